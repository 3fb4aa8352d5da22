"""Asks Azure Resource Manager, with retries of what may be repeated, and follows long-running operations.

The client is azure-core's pipeline with a credential of azure-identity; there is no logging policy in it, so that
neither tokens nor signed URLs can reach a log. Used by the provider and by the command line.

Two functions answer programs before they register anything. Nothing in them waits for long, and nothing fails.
``amlstack:azure:lookUp`` says what Azure says of one resource: azure-native's functions end the program where they find
none, and know one subscription only. ``amlstack:capacity:*`` tells what a subscription may use, of a region and at all,
and which clusters a workspace has; what could not be read is a ``problem`` in words. Shapes are those of the resource
manager's ``usages``, ``vmSizes`` and ``quotas`` of Microsoft.MachineLearningServices
(learn.microsoft.com/rest/api/azureml: usages/list, virtual-machine-sizes/list, quotas/list and quotas/update, whose
example has the ids of a workspace's rows).
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode, urljoin, urlsplit

from amlstack.base.api_versions import MACHINE_LEARNING as API_VERSION
from amlstack.base.api_versions import RESOURCES
from amlstack.provider.arm.exchange import (
    FAULTS,
    LOADING,
    THROTTLED_SECONDS,
    ArmError,
    Attempts,
    InterruptedWaitError,
    Response,
    error_of,
    load_azure_core,
    make_transport,
    no_answer,
    parsed,
    pause,
)
from amlstack.provider.arm.sign_in import Cloud, SignIn, cloud_at

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential


_VERBS: Final = {"GET": "read", "HEAD": "read", "PUT": "write", "PATCH": "write", "DELETE": "delete"}
_ROLE: Final = "AzureML Data Scientist"


def needed_right(method: str, url: str) -> str:
    """``Microsoft.…/workspaces/jobs/write``; empty for what is no request to a resource provider.

    Args:
        method: HTTP method.
        url: Absolute URL, or its path.
    """
    path = urlsplit(url).path
    namespace, _, rest = path.partition("/providers/")[2].partition("/")
    if not namespace:
        return ""
    words = rest.strip("/").split("/")
    if path.startswith("/history/"):
        return f"{namespace}/workspaces/experiments/runs/{_VERBS.get(method, 'write')}"
    types = "/".join(words[::2])
    if method == "POST":
        return f"{namespace}/{types}/action"
    return f"{namespace}/{types}/{_VERBS[method]}"


_DEFAULT_DELAY: Final = 2.0
_UNFINISHED: Final = frozenset({"inprogress", "running", "accepted", "creating", "updating", "deleting", "notstarted"})
_JOB: Final = re.compile(r".*/workspaces/[^/]+/jobs/[^/]+", re.IGNORECASE)
_READS: Final = frozenset({"GET", "HEAD"})
_MOST_PAGES: Final = 10_000
"""More pages than any list has; one that never ends is an error and no reason to hang."""


class ArmClient:
    """Asks ARM. Safe for use by several threads.

    Args:
        arm_endpoint: ``https://host``, without a path.
        credential: Any azure-core token credential; that of ``sign_in`` when not given, made at the first call.
        sign_in: How to sign in, and to which cloud; as the environment says when not given.
        cancelled: Ends every wait and every request when it is set.
        announce: Takes the messages to show while a request waits, e.g. that the service throttles.
        ca: PEM file of the authorities to trust; those of the environment when not given.
    """

    def __init__(
        self,
        arm_endpoint: str,
        credential: TokenCredential | None = None,
        *,
        sign_in: SignIn | None = None,
        cancelled: threading.Event | None = None,
        announce: Callable[[str], None] | None = None,
        ca: str | None = None,
    ) -> None:
        self.endpoint = arm_endpoint
        self._credential = credential
        self._sign_in = sign_in or SignIn.read({})
        self._cancelled = cancelled
        self._ca = ca
        self._announce = announce or _silent
        self._lock = threading.Lock()
        self._pipeline: Any = None

    @property
    def ca(self) -> str | None:
        """PEM file of the authorities to trust; None for those of the environment."""
        return self._ca

    @property
    def tenant(self) -> str:
        """The directory in which to sign in; empty where none is named."""
        return self._sign_in.values.get("tenantId", "")

    @property
    def cloud(self) -> Cloud:
        """The cloud of the endpoint; the one that is configured when the endpoint is none of Azure's own.

        Raises:
            ArmError: The environment names a cloud that there is not.
        """
        return cloud_at(self.endpoint, self._sign_in.cloud)

    @property
    def ml_audience(self) -> str:
        """Whom a token for Azure Machine Learning itself is for."""
        return self.cloud.ml_audience

    @property
    def credential(self) -> TokenCredential:
        """The credential that the client signs in with: for Microsoft's own clients of other services."""
        credential: TokenCredential = self._made()[1]
        return credential

    def token(self, audience: str) -> str:
        """A token of the same credential for another service.

        Raises:
            ArmError: There is no credential.
        """
        load_azure_core()
        from azure.core.exceptions import ClientAuthenticationError  # noqa: PLC0415 - as in `_once`

        try:
            return self._made()[1].get_token(f"{audience}/.default").token
        except ClientAuthenticationError as error:
            raise ArmError(0, "NoCredential", _no_credential(str(error))) from None

    def get(self, path: str, api_version: str | None = API_VERSION, **options: Any) -> Response:
        """GET; see `request`."""
        return self.request("GET", path, api_version, **options)

    def pages(
        self,
        path: str,
        api_version: str | None = API_VERSION,
        *,
        once: bool = False,
        most: int = _MOST_PAGES,
        **options: Any,
    ) -> Iterator[list[dict[str, Any]]]:
        """The rows of a list, page by page; a list that is not there has none where its 404 is allowed.

        Args:
            path: Of the list.
            api_version: See `request`.
            once: Ask as `look` does, for what may as well stay unknown.
            most: So many pages are asked for at most.
            options: See `request`; only the first page may have an allowed status.

        Raises:
            ArmError: A page could not be read, or there are more: no part of the list stands for all of it.
        """
        ask = self.look if once else self.get
        response = ask(path, api_version, **options)
        for number in range(1, most + 1):
            body = response.body if response.status < 400 and isinstance(response.body, dict) else {}
            yield [row for row in body.get("value") or () if isinstance(row, dict)]
            if not body.get("nextLink"):
                return
            if number < most:
                response = ask(str(body["nextLink"]), None)
        raise ArmError(0, "ListTooLong", f"the list {path} has more than {most} pages")

    def rows(self, path: str, api_version: str | None = API_VERSION, **options: Any) -> Iterator[dict[str, Any]]:
        """The rows of a list; see `pages`."""
        for page in self.pages(path, api_version, **options):
            yield from page

    def look(
        self, path: str, api_version: str | None = API_VERSION, *, query: Mapping[str, str] | None = None
    ) -> Response:
        """GET of something that may as well stay unknown: asked once, a 404 is an answer, nothing is announced."""
        url = self.url(path, api_version, query)
        words = f"GET {'/'.join(urlsplit(url).path.split('/')[-2:])}"
        attempts = Attempts(words, False, self._cancelled, _silent, faults=FAULTS, throttled=THROTTLED_SECONDS)
        response, text = attempts.run(lambda: self._once("GET", url, None, acting=False))
        if response.status >= 400 and response.status != 404:
            raise error_of(response, text)
        return response

    def put(self, path: str, body: Any, api_version: str = API_VERSION, **options: Any) -> Response:
        """PUT a JSON body; see `request`. A job that acts for the person who submits it brings that person's token."""
        acting = acts_for_a_person(path, body)
        return self.request("PUT", path, api_version, body=body, acting=acting, **options)

    def post(self, path: str, body: Any = None, api_version: str | None = API_VERSION, **options: Any) -> Response:
        """POST, with a JSON body if there is one; see `request`."""
        return self.request("POST", path, api_version, body=body, **options)

    def patch(self, path: str, body: Any, api_version: str | None = API_VERSION, **options: Any) -> Response:
        """PATCH a JSON body; see `request`."""
        return self.request("PATCH", path, api_version, body=body, **options)

    def delete(self, path: str, api_version: str = API_VERSION, **options: Any) -> Response:
        """DELETE; see `request`."""
        return self.request("DELETE", path, api_version, **options)

    def request(
        self,
        method: str,
        path: str,
        api_version: str | None = API_VERSION,
        *,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        allow: tuple[int, ...] = (),
        acting: bool = False,
    ) -> Response:
        """Asks, and asks again after a fault of the connection or the service, or when the service throttles.

        Args:
            method: HTTP method.
            path: ``/subscriptions/…``, or an absolute https URL for what the service itself has named.
            api_version: Added to the query; ``None`` for data-plane calls, which have none.
            body: Sent as JSON.
            query: Further query parameters.
            allow: Statuses of 400 and above that are answers to the caller, not errors.
            acting: Send a token for Azure Machine Learning itself too (``x-azureml-token``).

        Raises:
            ArmError: Any other status of 400 and above, no connection, no credential.
            InterruptedWaitError: The engine wants to end.
        """
        response, text = self.exchange(method, self.url(path, api_version, query), body, acting=acting)
        if response.status >= 400 and response.status not in allow:
            error = error_of(response, text)
            if response.status == 403:
                right = needed_right(method, response.url)
                advice = f" It needs the right {right}, which the role {_ROLE} has, among others." if right else ""
                raise ArmError(403, error.code, f"{error.message.rstrip('.')}.{advice}")
            raise error
        return response

    def exchange(self, method: str, url: str, body: Any, *, acting: bool = False) -> tuple[Response, str]:
        """Sends a request and reads its answer, whatever its status; a subclass may carry it otherwise.

        Args:
            method: HTTP method.
            url: Absolute, with its query.
            body: Sent as JSON; None for no body.
            acting: Send a token for Azure Machine Learning itself too.

        Returns:
            The answer, and its text.

        Raises:
            ArmError: No connection, no credential.
            InterruptedWaitError: The engine wants to end.
        """
        words = f"{method} {'/'.join(urlsplit(url).path.split('/')[-2:])}"
        attempts = Attempts(words, method not in _READS, self._cancelled, self._announce)
        return attempts.run(lambda: self._once(method, url, body, acting=acting))

    def _once(self, method: str, url: str, body: Any, *, acting: bool) -> tuple[Response, str]:
        load_azure_core()
        from azure.core.exceptions import AzureError, ClientAuthenticationError  # noqa: PLC0415
        from azure.core.rest import HttpRequest  # noqa: PLC0415

        request = HttpRequest(method, url, json=body)
        request.headers["Accept"] = "application/json"
        try:
            pipeline, credential = self._made()
            if acting:
                request.headers[ACTING_HEADER] = credential.get_token(f"{self.ml_audience}/.default").token
            raw = pipeline.send_request(request)
            text = raw.text()
        except ClientAuthenticationError as error:
            raise ArmError(0, "NoCredential", _no_credential(str(error))) from None
        except (AzureError, OSError) as error:  # OSError: the authorities cannot be read
            raise no_answer(url, error) from None
        headers = {name.lower(): value for name, value in raw.headers.items()}
        return Response(raw.status_code, parsed(text), headers, request.url), text

    def url(self, path: str, api_version: str | None, query: Mapping[str, str] | None = None) -> str:
        """The absolute URL of a path, with its query.

        Raises:
            ArmError: An absolute URL that is not https.
        """
        if path.startswith("/"):
            url = self.endpoint + quote(path, safe="/:@!$&'()*+,;=-._~%")
        elif path.startswith("https://"):
            url = path
        else:
            raise ArmError(0, "EndpointInvalid", f"{path.split('?', 1)[0]} is no https URL: tokens are not sent there")
        parameters = {**({"api-version": api_version} if api_version else {}), **(query or {})}
        if not parameters:
            return url
        return f"{url}{'&' if urlsplit(url).query else '?'}{urlencode(parameters, safe='$', quote_via=quote)}"

    def finish(
        self, response: Response, cancelled: threading.Event | None = None, *, on_wait: Callable[[], None] | None = None
    ) -> Response:
        """Waits for the end of the long-running operation that an answer has started, if it has.

        Args:
            response: The answer.
            cancelled: Ends the wait when it is set.
            on_wait: Called before each pause, to show progress.

        Returns:
            The final answer; ``response`` itself when nothing was started.

        Raises:
            ArmError: The operation failed or was cancelled.
            InterruptedWaitError: ``cancelled`` was set.
        """
        operation = response.headers.get("azure-asyncoperation")
        if operation:
            return self._finish_operation(response, urljoin(response.url, operation), cancelled, on_wait)
        location = response.headers.get("location")
        while response.status == 202 and location:
            self._until_next_look(response, cancelled, on_wait)
            response = self.request("GET", urljoin(response.url or self.endpoint, location), None)
            location = response.headers.get("location", location)
        return response

    def _finish_operation(
        self, response: Response, operation: str, cancelled: threading.Event | None, on_wait: Callable[[], None] | None
    ) -> Response:
        current = response
        while True:
            status = str(current.body.get("status", "") if current is not response else "InProgress")
            if status.lower() == "succeeded":
                return current
            if status.lower() not in _UNFINISHED:
                raise error_of(current, f"the operation ended {status}")
            self._until_next_look(current, cancelled, on_wait)
            current = self.request("GET", operation, None)

    def _until_next_look(
        self, response: Response, cancelled: threading.Event | None, on_wait: Callable[[], None] | None
    ) -> None:
        if on_wait is not None:
            on_wait()
        try:
            pause(response.delay or _DEFAULT_DELAY, cancelled or self._cancelled)
        except InterruptedWaitError:
            what = f"the end of an operation of {'/'.join(urlsplit(response.url).path.split('/')[-2:])}"
            raise InterruptedWaitError(what, uncertain=True) from None

    def _made(self) -> tuple[Any, TokenCredential]:
        """The pipeline and the credential, made at the first call."""
        load_azure_core()
        with self._lock, LOADING:
            if self._credential is None:
                self._credential = self._sign_in.credential(self.cloud)
            if self._pipeline is None:
                from azure.core import PipelineClient  # noqa: PLC0415
                from azure.core.pipeline.policies import (  # noqa: PLC0415
                    BearerTokenCredentialPolicy,
                    UserAgentPolicy,
                )

                bearer = BearerTokenCredentialPolicy(self._credential, f"{self.endpoint}/.default")
                # No retry policy: its sleeps could not be interrupted (see `retries`).
                policies = [UserAgentPolicy("amlstack"), bearer]
                transport = make_transport(self._ca)
                self._pipeline = PipelineClient(self.endpoint, policies=policies, transport=transport)
            return self._pipeline, self._credential


ACTING_HEADER: Final = "x-azureml-token"
"""Carries a token for Azure Machine Learning itself, with which the service acts for the user who submits a job."""


def acts_for_a_person(path: str, body: Any) -> bool:
    """True where a PUT submits a job for which the service needs the person's own token.

    That is every pipeline, and every job with ``identity: user_identity``, as azure-ai-ml 1.35 has it
    (``operations/_job_operations.py``, ``create_or_update``); schedules are none.
    """
    properties = body.get("properties") if isinstance(body, dict) else None
    if not isinstance(properties, dict) or not _JOB.fullmatch(path):
        return False
    identity = properties.get("identity")
    return properties.get("jobType") == "Pipeline" or (
        isinstance(identity, dict) and identity.get("identityType") == "UserIdentity"
    )


def _silent(message: str) -> None:
    """Drops a progress message."""


def _no_credential(message: str) -> str:
    first = message.strip().splitlines()[0] if message.strip() else "no credential"
    return f"no Entra ID token ({first[:300]}); sign in with `az login`, or set ARM_… or azure-native:… as azure-native"


SECONDS: Final = 20.0
"""The longest time that the answers to one question may take together."""
_NOBODY: Final = "no answer"
_LOOK: Final = 0.1


def read_regions(arm: ArmClient, args: Mapping[str, Any], cancelled: threading.Event) -> dict[str, Any]:
    """The quota of regions, and of some sizes whether they are offered there.

    Args:
        arm: Azure Resource Manager.
        args: ``{"subscription": id, "regions": {name: [size, …]}, "workspace": ARM id}``; without a workspace, its part
            of the quota is not asked for.
        cancelled: Ends the wait.

    Returns:
        ``{"regions": {name: {"usages": [{"name", "label", "current", "limit"}], "sizes": {name: {"family", "vcpus",
        "lowPriority"}}, "listed": count of sizes, "problem": text, "granted": [{"name", "label", "current", "limit"}],
        "grantedProblem": text}}}``; a problem is empty where all was read.
    """
    root = f"/subscriptions/{args['subscription']}/providers/Microsoft.MachineLearningServices/locations"
    regions: Mapping[str, Collection[str]] = args["regions"]
    workspace = str(args.get("workspace") or "")
    lists = ("usages", "vmSizes", "quotas") if workspace else ("usages", "vmSizes")
    paths = [f"{root}/{region}/{what}" for region in regions for what in lists]
    answers = _answers(arm, paths, cancelled)
    found: dict[str, dict[str, Any]] = {}
    for region, wanted in regions.items():
        usages, sizes = answers[f"{root}/{region}/usages"], answers[f"{root}/{region}/vmSizes"]
        problems = [each for each in (usages, sizes) if isinstance(each, str)]
        found[region] = {
            "usages": [] if isinstance(usages, str) else [_usage(row) for row in usages],
            "sizes": {} if isinstance(sizes, str) else _sizes(sizes, wanted),
            "listed": 0 if isinstance(sizes, str) else len(sizes),
            "problem": problems[0] if problems else "",
        }
        if workspace:
            quotas = answers[f"{root}/{region}/quotas"]
            failed = isinstance(quotas, str)
            found[region]["granted"] = [] if isinstance(quotas, str) else _granted(quotas, workspace)
            found[region]["grantedProblem"] = quotas if failed else ""
    return {"regions": found}


def read_providers(arm: ArmClient, args: Mapping[str, Any], cancelled: threading.Event) -> dict[str, Any]:
    """The states of resource providers in a subscription.

    Args:
        arm: Azure Resource Manager.
        args: ``{"subscription": id, "namespaces": [name, …]}``.
        cancelled: Ends the wait.

    Returns:
        ``{"states": {namespace: "Registered", …}, "problem": text}``; what could not be read has no state.
    """
    paths = {f"/subscriptions/{args['subscription']}/providers/{name}": name for name in args["namespaces"]}
    answers = _answers(arm, list(paths), cancelled, lambda path: [arm.look(path, RESOURCES).body or {}])
    problems = [each for each in answers.values() if isinstance(each, str)]
    read = {paths[at]: rows[0] for at, rows in answers.items() if not isinstance(rows, str)}
    states = {name: str(row.get("registrationState") or "") for name, row in read.items()}
    return {"states": states, "problem": problems[0] if problems else ""}


def read_clusters(arm: ArmClient, args: Mapping[str, Any], cancelled: threading.Event) -> dict[str, Any]:
    """The AmlCompute clusters of a workspace; a workspace that is not there has none.

    Args:
        arm: Azure Resource Manager.
        args: ``{"workspace": ARM id}``.
        cancelled: Ends the wait.

    Returns:
        ``{"clusters": [{"name", "location", "size", "priority", "max"}], "problem": text}``.
    """
    path = f"{args['workspace']}/computes"
    rows = _answers(arm, [path], cancelled)[path]
    if isinstance(rows, str):
        return {"clusters": [], "problem": rows}
    return {"clusters": [_cluster(row) for row in rows if _inner(row, "vmSize")], "problem": ""}


FUNCTIONS: Final[Mapping[str, Callable[[ArmClient, Mapping[str, Any], threading.Event], dict[str, Any]]]] = {
    "amlstack:capacity:ofRegions": read_regions,
    "amlstack:capacity:ofProviders": read_providers,
    "amlstack:capacity:ofWorkspace": read_clusters,
}


def _answers(
    arm: ArmClient, paths: list[str], cancelled: threading.Event, read: Callable[[str], list[Any]] | None = None
) -> dict[str, list[Any] | str]:
    """The rows of each list, or why there are none. The first is asked alone: signing in once is enough."""
    read = read or (lambda path: list(arm.rows(path, once=True)))
    end = time.monotonic() + SECONDS
    found: dict[str, list[Any] | str] = {}
    for some in (paths[:1], paths[1:]):
        threads = [threading.Thread(target=_into, args=(found, read, path), daemon=True) for path in some]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive() and time.monotonic() < end and not cancelled.is_set():
                thread.join(_LOOK)
        if isinstance(first := found.get(paths[0]), str) and first.startswith(_NOBODY):
            return dict.fromkeys(paths, first)  # who did not answer the first does not answer the others
    return {path: found.get(path, f"{_NOBODY} within {SECONDS:.0f} s") for path in paths}


def _into(found: dict[str, list[Any] | str], read: Callable[[str], list[Any]], path: str) -> None:
    try:
        found[path] = read(path)
    except ArmError as error:
        found[path] = str(error) if error.status else f"{_NOBODY}: {error}"
    except InterruptedWaitError:
        found[path] = "interrupted"


def _usage(row: Mapping[str, Any]) -> dict[str, Any]:
    name = row.get("name") if isinstance(row.get("name"), dict) else {}
    return {
        "name": str((name or {}).get("value") or ""),
        "label": str((name or {}).get("localizedValue") or ""),
        "current": _number(row.get("currentValue")),
        "limit": _number(row.get("limit"), -1),
    }


def _granted(rows: list[Any], workspace: str) -> list[dict[str, Any]]:
    """The rows of one workspace: their ids lie under its own, ``…/workspaces/NAME/quotas/FAMILY``."""
    under = f"{workspace}/quotas/".casefold()
    return [
        {**_usage(row), "label": str(row["id"]).rsplit("/", 1)[-1]}
        for row in rows
        if str(row.get("id") or "").casefold().startswith(under)
    ]


def _sizes(rows: list[Any], wanted: Collection[str]) -> dict[str, Any]:
    """The service's answers on the sizes that are asked for, under the names by which they are asked for."""
    listed = {str(row.get("name")).casefold(): row for row in rows}
    return {
        name: {
            "family": str(row.get("family") or ""),
            "vcpus": _number(row.get("vCPUs")),
            "lowPriority": row.get("lowPriorityCapable") is not False,
        }
        for name in wanted
        if (row := listed.get(name.casefold())) is not None
    }


def _cluster(row: Mapping[str, Any]) -> dict[str, Any]:
    outer = row.get("properties") or {}
    return {
        "name": str(row.get("name") or ""),
        "location": str(outer.get("computeLocation") or row.get("location") or "").replace(" ", "").lower(),
        "size": str(_inner(row, "vmSize")),
        "priority": str(_inner(row, "vmPriority") or "Dedicated"),
        "max": _number((_inner(row, "scaleSettings") or {}).get("maxNodeCount")),
    }


def _inner(row: Mapping[str, Any], name: str) -> Any:
    return ((row.get("properties") or {}).get("properties") or {}).get(name)


def _number(value: Any, otherwise: int = 0) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else otherwise


FUNCTION: Final = "amlstack:azure:lookUp"


def look_up(arm: ArmClient, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Ask for a resource.

    Args:
        arm: Azure Resource Manager.
        asked: ``{"id": ARM id, "apiVersion": …, "properties": [names]}``; nothing but the named properties is given
            back, as some hold keys.

    Returns:
        ``{"status": 200, "location", "properties": {…}}``, or ``{"status", "code", "message"}`` with the service's own
        words; status 0 when it could not be asked.
    """
    try:
        body = arm.get(str(asked["id"]), str(asked["apiVersion"])).body
    except ArmError as error:
        return {"status": error.status, "code": error.code, "message": error.message}
    properties = body.get("properties") or {}
    wanted = asked.get("properties") or ()
    found = {name: properties[name] for name in wanted if properties.get(name) is not None}
    return {"status": 200, "location": str(body.get("location") or ""), "properties": found}
