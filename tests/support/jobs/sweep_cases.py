"""Sweep job files, one oddity each: lines that are added to BASE, or replace its keys."""

from __future__ import annotations

BASE = {
    "type": "sweep",
    "trial": {"command": "python a.py ${{search_space.lr}} ${{inputs.d}}", "environment": "azureml:e:1"},
    "inputs": {"d": 1},
    "objective": {"goal": "maximize", "primary_metric": "acc"},
    "search_space": {"lr": {"type": "uniform", "min_value": 0.1, "max_value": 1}},
    "limits": {"max_total_trials": 10},
}

ACCEPTED = {
    "plain": "{}",
    "word-random": "sampling_algorithm: Random",
    "word-grid": "sampling_algorithm: GRID",
    "word-bayesian": "sampling_algorithm: bayesian",
    "random-sobol": "sampling_algorithm: {type: random, rule: Sobol, seed: 3, logbase: e}",
    "random-numbers": 'sampling_algorithm: {type: Random, rule: random, seed: "3", logbase: "2"}',
    "random-logbase": "sampling_algorithm: {type: RANDOM, logbase: 2.5}",
    "seed-zero": "sampling_algorithm: {type: random, seed: 0}",
    "mapping-grid": "sampling_algorithm: {type: grid}",
    "mapping-bayesian": "sampling_algorithm: {type: Bayesian}",
    "goal-in-capitals": "objective: {goal: MINIMIZE, primary_metric: a}",
    "limits": "limits: {max_total_trials: '10', max_concurrent_trials: 2.0, timeout: 3600, trial_timeout: 90}",
    "limits-short": "limits: {max_total_trials: 1, timeout: 30, trial_timeout: 60}",
    "limits-zero": "limits: {max_total_trials: 0, timeout: 0}",
    "every-distribution": (
        "search_space: {a: {type: choice, values: [1, 2.5, x, '3']}, b: {type: Uniform, min_value: 1, max_value: 2.5},"
        " c: {type: loguniform, min_value: -6.0, max_value: -1}, d: {type: quniform, min_value: 1, max_value: 9, q: 2},"
        " e: {type: qloguniform, min_value: 1, max_value: 10, q: 2}, f: {type: normal, mu: 0, sigma: 1.0},"
        " g: {type: LogNormal, mu: 0, sigma: 1}, h: {type: qnormal, mu: 0, sigma: 1, q: 1},"
        " i: {type: qlognormal, mu: 0, sigma: 1, q: 0.5}, j: {type: RANDINT, upper: 10}}"
    ),
    "nested-choice": (
        "search_space: {a: {type: choice, values: [{x: 1, y: {type: uniform, min_value: 0, max_value: 1}, z: s,"
        " w: 1.5, v: {type: choice, values: [1, 2]}}, {x: 2}]}}"
    ),
    "choice-empty": "search_space: {a: {type: choice, values: []}}",
    "choice-without-values": "search_space: {a: {type: choice}}",
    "numbers-as-text": 'search_space: {a: {type: normal, mu: "0", sigma: "1.5"}, b: {type: randint, upper: "10"}}',
    "randint-float": "search_space: {a: {type: randint, upper: 10.0}}",
    "nothing-varied": "search_space: {}",
    "bandit-factor": "early_termination: {type: bandit, slack_factor: 0.1, evaluation_interval: 2}",
    "bandit-amount": "early_termination: {type: Bandit, slack_amount: 0.1, delay_evaluation: 5}",
    "bandit-both": "early_termination: {type: bandit, slack_amount: 0.1, slack_factor: 0.2}",
    "bandit-neither": "early_termination: {type: bandit}",
    "median": 'early_termination: {type: median_stopping, evaluation_interval: "2"}',
    "median-camel": "early_termination: {type: MedianStopping}",
    "truncation": "early_termination: {type: truncation_selection, truncation_percentage: 20, delay_evaluation: 3}",
    "compute-and-resources": "compute: azureml:gpu\nresources: {instance_count: 3, instance_type: Standard_ND40rs_v2}",
    "compute-local": "compute: local",
    "trial-mpi": (
        "trial: {command: c, environment: 'azureml:e:1', environment_variables: {A: 1}, resources: {instance_count: 2,"
        " shm_size: 1g, docker_args: [a], locations: [e]}, distribution: {type: MPI, process_count_per_instance: 2},"
        " queue_settings: {job_tier: spot}, code: src}"
    ),
    "trial-pytorch": "trial: {command: c, environment: 'azureml:e:1', distribution: {type: pytorch}}",
    "trial-tensorflow": (
        "trial: {command: c, environment: 'azureml:e:1', distribution: {type: tensorflow, worker_count: 2}}"
    ),
    "trial-ray": "trial: {command: c, environment: 'azureml:e:1', distribution: {type: ray, port: 1}}",
    "trial-resources-empty": "trial: {command: c, environment: 'azureml:e:1', resources: {}}",
    "trial-inline-environment": "trial: {command: c, environment: {image: x, conda_file: {dependencies: [a]}}}",
    "old-binding": "trial: {command: 'c {search_space.lr} {inputs.d}', environment: 'azureml:e:1'}",
    "metadata": (
        "queue_settings: {job_tier: spot, priority: high}\nidentity: {type: user_identity}\ntags: {a: b}\n"
        "properties: {c: d}\ndescription: x\nname: n\ndisplay_name: D\nexperiment_name: E\n"
        "outputs: {m: {type: uri_folder, mode: upload}, n: }"
    ),
    "policy-nulls": "early_termination: {type: bandit, slack_factor: , slack_amount: 1, evaluation_interval: }",
    "median-nulls": "early_termination: {type: median_stopping, delay_evaluation: , evaluation_interval: }",
    "logbase-whole": "sampling_algorithm: {type: random, logbase: 2}",
    "services-are-not-sent": "services: {a: {type: ssh}}",
    "data": "inputs: {d: {type: uri_folder, path: 'azureml:x:1', mode: ro_mount}, e: true, f: 0.5}",
}

REFUSED = {
    "type-in-capitals": "type: Sweep",
    "sampling-unknown": "sampling_algorithm: {type: bayesian, seed: 3}",
    "sampling-without-type": "sampling_algorithm: {seed: 3}",
    "objective-without-metric": "objective: {goal: minimize}",
    "no-objective": "objective: null",
    "no-limits": "limits: null",
    "limits-empty": "limits: {}",
    "no-search-space": "search_space: null",
    "choice-of-truth": "search_space: {a: {type: choice, values: [true]}}",
    "normal-without-sigma": "search_space: {a: {type: normal, mu: 0}}",
    "distribution-with-more": "search_space: {a: {type: normal, mu: 0, sigma: 1, bogus: 2}}",
    "distribution-unknown": "search_space: {a: {type: gamma, mu: 0}}",
    "name-with-dash": "search_space: {a-b: {type: randint, upper: 1}}",
    "policy-as-word": "early_termination: bandit",
    "truncation-without-percentage": "early_termination: {type: truncation_selection}",
    "trial-unknown-key": "trial: {command: c, environment: 'azureml:e:1', bogus: 1}",
    "trial-with-inputs": "trial: {command: c, environment: 'azureml:e:1', inputs: {a: 1}}",
    "trial-without-command": "trial: {environment: 'azureml:e:1'}",
    "trial-in-a-file": "trial: ./component.yml",
    "input-unbound": "trial: {command: 'c ${{inputs.lr}}', environment: 'azureml:e:1'}",
    "services-unknown-key": "services: {a: b}",
    "unknown-key": "bogus: 1",
}
