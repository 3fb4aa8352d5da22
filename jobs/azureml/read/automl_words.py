"""What Azure ML's automated training knows by name: tasks, metrics, models, and the keys of their blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.base.spelling import snake
from jobs.azureml.cursor import Bad
from jobs.azureml.fields import listed, same, text, truth, whole, word
from jobs.azureml.read.passthrough import OrBound
from jobs.azureml.read.sweep import decimal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jobs.azureml.cursor import Cursor

    Readers = Mapping[str, Callable[[Cursor], Any]]

CLASSIFYING = (
    "accuracy",
    "auc_weighted",
    "norm_macro_recall",
    "average_precision_score_weighted",
    "precision_score_weighted",
)
_NUMBERS = (
    "normalized_root_mean_squared_error",
    "spearman_correlation",
    "r2_score",
    "normalized_mean_absolute_error",
)
_PRECISION = ("mean_average_precision",)
TASKS = {
    "classification": CLASSIFYING,
    "regression": _NUMBERS,
    "forecasting": _NUMBERS,
    "image_classification": CLASSIFYING,
    "image_classification_multilabel": ("iou", *CLASSIFYING),
    "image_object_detection": _PRECISION,
    "image_instance_segmentation": _PRECISION,
    "text_classification": CLASSIFYING,
    "text_classification_multilabel": CLASSIFYING[:1],
    "text_ner": CLASSIFYING[:1],
}
"""What is trained, to its metrics; the first is the default."""
_TREES = ("gradient_boosting", "decision_tree", "knn", "sgd", "random_forest", "extreme_random_trees", "light_gbm")
_REGRESSORS = (*_TREES, "elastic_net", "lasso_lars", "xg_boost_regressor")
_BAYES = ("multinomial_naive_bayes", "bernoulli_naive_bayes")
_SERIES = ("auto_arima", "prophet", "naive", "seasonal_naive", "average", "seasonal_average", "exponential_smoothing")
MODELS = {
    "classification": (*_TREES, *_BAYES, "logistic_regression", "svm", "linear_svm", "xg_boost_classifier"),
    "regression": _REGRESSORS,
    "forecasting": (*_REGRESSORS, *_SERIES, "arimax", "tcn_forecaster"),
}
"""Algorithms of the tasks on tables."""
_LEARNERS = ("none", "logistic_regression", "logistic_regression_cv", "light_gbm_classifier", "elastic_net",
             "elastic_net_cv", "light_gbm_regressor", "linear_regression")  # fmt: skip
_ENCODERS = ("text_target_encoder", "one_hot_encoder", "cat_target_encoder", "tf_idf", "wo_e_target_encoder",
             "label_encoder", "word_embedding", "naive_bayes", "count_vectorizer", "hash_one_hot_encoder")  # fmt: skip
WORDS = {
    "learning_rate_scheduler": ("none", "warmup_cosine", "step"),
    "optimizer": ("none", "sgd", "adam", "adamw"),
    "model_size": ("none", "small", "medium", "large", "extra_large"),
    "validation_metric_type": ("none", "coco", "voc", "coco_voc"),
}
"""Values of an image model's settings that are words."""
NLP_SCHEDULES = ("none", "linear", "cosine", "cosine_with_restarts", "polynomial", "constant", "constant_with_warmup")
LEARNER = word(same(*_LEARNERS), snake)
ENCODER = OrBound(word(same(*_ENCODERS), snake))
TRANSFORMERS = word(same("imputer", "tf_idf", "hash_one_hot_encoder"), snake)
VERBOSITY = OrBound(word(same("not_set", "debug", "info", "warning", "error", "critical"), snake))
MODE = OrBound(word(same("auto", "off", "custom")))
TRAINING_MODE = OrBound(word(same("auto", "distributed", "non_distributed"), snake))

_FLAGS = ("ams_gradient", "distributed", "early_stopping", "enable_onnx_normalization", "nesterov")
_COUNTS = ("early_stopping_delay", "early_stopping_patience", "evaluation_frequency", "gradient_accumulation_step",
           "layers_to_freeze", "number_of_epochs", "number_of_workers", "random_seed", "step_lr_step_size",
           "training_batch_size", "validation_batch_size", "warmup_cosine_lr_warmup_epochs")  # fmt: skip
_RATES = ("beta1", "beta2", "learning_rate", "momentum", "step_lr_gamma", "warmup_cosine_lr_cycles", "weight_decay")
_CROPS = ("training_crop_size", "validation_crop_size", "validation_resize_size", "weighted_loss")
_BOXES = ("box_detections_per_image", "image_size", "max_size", "min_size")
_SCORES = ("box_score_threshold", "nms_iou_threshold", "tile_overlap_ratio", "tile_predictions_nms_threshold",
           "validation_iou_threshold")  # fmt: skip
IMAGE: dict[str, str] = {
    **dict.fromkeys(_FLAGS, "flag"),
    **dict.fromkeys(_COUNTS, "count"),
    **dict.fromkeys(_RATES, "rate"),
    **dict.fromkeys(("learning_rate_scheduler", "optimizer"), "word"),
    "model_name": "text",
}
CLASSES = IMAGE | dict.fromkeys(_CROPS, "count")
DETECTION = {
    **IMAGE,
    **dict.fromkeys(_BOXES, "count"),
    **dict.fromkeys(_SCORES, "rate"),
    **dict.fromkeys(("model_size", "validation_metric_type"), "word"),
    "multi_scale": "flag",
    "tile_grid_size": "text",
}
NLP: dict[str, str] = {
    **dict.fromkeys(
        ("gradient_accumulation_steps", "number_of_epochs", "training_batch_size", "validation_batch_size"), "count"
    ),
    **dict.fromkeys(("learning_rate", "warmup_ratio", "weight_decay"), "rate"),
    "learning_rate_scheduler": "word",
    "model_name": "text",
}
"""Settings of a model, each with the kind of its values."""


def words_of(key: str, *, nlp: bool) -> tuple[str, ...]:
    """The words that a setting of a model takes."""
    return NLP_SCHEDULES if nlp else WORDS[key]


def settings(kinds: dict[str, str], *, nlp: bool = False) -> Readers:
    """Readers of a model's fixed settings."""
    read = {"flag": truth, "count": whole, "rate": decimal, "text": text}
    return {
        key: OrBound(read[kind] if kind in read else word(same(*words_of(key, nlp=nlp)), snake))
        for key, kind in kinds.items()
    }


@dataclass(frozen=True, slots=True, eq=False)
class Either:
    """Reads the word `auto`, a list where one may stand, or a single value.

    Attributes:
        one: Reads a single value.
        many: Reads a list; None where none may stand.
        auto: Whether the word may stand.
    """

    one: Callable[[Cursor], Any]
    many: Callable[[Cursor], Any] | None = None
    auto: bool = True

    def __call__(self, cursor: Cursor) -> Any:
        """The value."""
        value = cursor.value
        if self.auto and isinstance(value, str) and value.lower() == "auto":
            return "auto"
        if isinstance(value, list) and self.many is not None:
            told = self.many(cursor)
            return told if told is Bad else list(told)
        return OrBound(self.one)(cursor)


_COUNT = Either(whole)
_NAMES = Either(text, listed(text), auto=False)
FORECASTING: Readers = {
    **dict.fromkeys(("country_or_region_for_holidays", "frequency", "time_column_name"), OrBound(text)),
    "cv_step_size": OrBound(whole),
    **dict.fromkeys(("forecast_horizon", "target_rolling_window_size", "seasonality"), _COUNT),
    "target_lags": Either(whole, listed(whole)),
    **dict.fromkeys(("time_series_id_column_names", "features_unknown_at_forecast_time"), _NAMES),
    "feature_lags": OrBound(word(same("none", "auto"))),
    "short_series_handling_config": OrBound(word(same("none", "auto", "pad", "drop"))),
    "use_stl": OrBound(word(same("none", "season", "season_trend"))),
    "target_aggregate_function": OrBound(word(same("none", "sum", "max", "min", "mean"))),
}
"""Settings of a forecast."""
VALIDATIONS = _COUNT
