"""Pipelines with steps of automated training, in the manner of the guides, one oddity each.

Values are passed through as they are written, so each case writes numbers as numbers. What Azure ML refuses inside a
step's own blocks is not refused here: nothing judges these steps but Azure ML itself.
"""

from __future__ import annotations

START = "inputs: {t: {type: mltable, path: 'azureml:t:1'}}\noutputs: {z: {type: mlflow_model}}\n"
DATA = "training_data: '${{parent.inputs.t}}'"


def _step(task: str, more: str = "") -> str:
    return (
        f"{START}jobs: {{s: {{type: automl, task: {task}, target_column_name: y, {DATA}{', ' if more else ''}{more}}}}}"
    )


ACCEPTED = {
    **{
        f"automl-{task}": _step(task)
        for task in (
            "classification",
            "regression",
            "Forecasting",
            "image_classification",
            "image_classification_multilabel",
            "image_object_detection",
            "image_instance_segmentation",
            "text_classification",
            "text_classification_multilabel",
            "text_ner",
        )
    },
    "automl-ner-without-target": f"{START}jobs: {{s: {{type: AutoML, task: text_ner, {DATA}}}}}",
    "automl-limits": _step(
        "classification",
        "limits: {enable_early_termination: true, exit_score: 1, max_concurrent_trials: 3, max_cores_per_trial: -1,"
        " max_nodes: 2, max_trials: 5, timeout_minutes: 10, trial_timeout_minutes: 5.0}, compute: azureml:gpu",
    ),
    "automl-featurization": _step(
        "regression",
        "featurization: {mode: Custom, dataset_language: eng, blocked_transformers: [CountVectorizer],"
        " column_name_and_types: {a: Numeric}, enable_dnn_featurization: true, transformer_params:"
        " {imputer: [{fields: [a], parameters: {strategy: median, k: 1, x: null}}]}}",
    ),
    "automl-training": _step(
        "classification",
        "training: {enable_dnn_training: true, enable_stack_ensemble: false, enable_vote_ensemble: false,"
        " ensemble_model_download_timeout_minutes: 300, training_mode: auto, allowed_training_algorithms:"
        " [LightGBM, gradient_boosting, XGBoostClassifier], blocked_training_algorithms: [SVM],"
        " stack_ensemble_settings: {stack_meta_learner_type: logistic_regression}},"
        " primary_metric: AUC_weighted, positive_label: p, n_cross_validations: 5, validation_data_size: 0.2,"
        " test_data_size: 0.1, cv_split_column_names: [a], weight_column_name: w, log_verbosity: NotSet",
    ),
    "automl-described-tables": _step(
        "classification",
        "validation_data: {path: 'azureml:v:1', mode: direct, type: mltable}, test_data: {path: ./data}",
    ),
    "automl-forecasting": _step(
        "forecasting",
        "forecasting: {time_column_name: d, country_or_region_for_holidays: US, cv_step_size: 3,"
        " forecast_horizon: auto, target_lags: [1, 2], target_rolling_window_size: 3,"
        " time_series_id_column_names: [a, b], frequency: D,"
        " feature_lags: auto, seasonality: 7, short_series_handling_config: auto, use_stl: season,"
        " target_aggregate_function: sum, features_unknown_at_forecast_time: x}, n_cross_validations: auto,"
        " training: {blocked_training_algorithms: [ExtremeRandomTrees, TCNForecaster]}",
    ),
    "automl-names": _step(
        "classification",
        "display_name: D, description: d, experiment_name: e, name: n, tags: {a: b}, properties: {c: d},"
        " environment_variables: {A: b}, environment_id: x, identity: {type: managed, client_id: i},"
        " resources: {instance_type: s, instance_count: 2}, queue_settings: {job_tier: Spot, priority: low},"
        " services: {a: {type: ssh}}",
    ),
    "automl-outputs": _step(
        "text_classification",
        "outputs: {best_model: {type: mlflow_model, mode: rw_mount}, a: '${{parent.outputs.z}}', b: , c: {},"
        " d: {type: mlflow_model, path: '${{parent.outputs.z}}', mode: upload}},"
        " featurization: {dataset_language: eng}",
    ),
    "automl-image-sweep": _step(
        "image_object_detection",
        "sweep: {sampling_algorithm: random, early_termination: {type: bandit, evaluation_interval: 2,"
        " slack_factor: 0.2, delay_evaluation: 6}}, limits: {max_trials: 10, max_concurrent_trials: 2},"
        " validation_data_size: 0.2,"
        " training_parameters: {early_stopping: true, learning_rate: 1, model_size: extra_large, optimizer: SGD,"
        " learning_rate_scheduler: WarmupCosine, tile_grid_size: '(3,2)', log_training_metrics: enable},"
        " search_space: [{model_name: {type: choice, values: [yolov5]}, learning_rate: {type: uniform,"
        " min_value: 0.00001, max_value: 0.01}, model_size: {type: choice, values: [small, extra_large]},"
        " nesterov: true,"
        " multi_scale: {type: choice, values: [true, false]}, beta1: {type: choice, values: [0.9, 1.0]}, beta2: 1.0,"
        " momentum: {type: choice, values: [0, 1]}, image_size: {type: choice, values: [600, 800]},"
        " weight_decay: {type: qnormal, mu: 0, sigma: 1, q: 0.5}, layers_to_freeze: {type: randint, upper: 3},"
        " optimizer: Adam, min_size: 600}, {model_name: fasterrcnn_resnet50_fpn}]",
    ),
    "automl-image-median": _step(
        "image_classification",
        "sweep: {sampling_algorithm: {type: random, seed: 3}, early_termination: {type: median_stopping}},"
        " training_parameters: {training_crop_size: 224, weighted_loss: 1}, search_space: []",
    ),
    "automl-image-truncation": _step(
        "image_instance_segmentation",
        "sweep: {sampling_algorithm: grid, early_termination: {type: truncation_selection, truncation_percentage: 20,"
        " delay_evaluation: null}}",
    ),
    "automl-text": _step(
        "text_ner",
        "limits: {max_trials: 4, max_concurrent_trials: 2, trial_timeout_minutes: 3}, log_verbosity: warning,"
        " training_parameters: {model_name: bert, learning_rate_scheduler: linear, warmup_ratio: 1},"
        " search_space: [{model_name: {type: choice, values: [a, b c]}, weight_decay: {type: uniform, min_value: 0,"
        " max_value: 1}, number_of_epochs: {type: choice, values: [3, 4]}, learning_rate: 0.00005}]",
    ),
    "automl-bound": _step("classification", "limits: {max_trials: '${{parent.inputs.t}}'}, weight_column_name: ''"),
    "automl-and-a-command": (
        f"{START}jobs:\n  s: {{type: automl, task: regression, target_column_name: y, {DATA},"
        " outputs: {best_model: {type: mlflow_model}}}\n"
        "  c: {command: 'ls ${{inputs.m}}', environment: 'azureml:e:1',"
        " inputs: {m: '${{parent.jobs.s.outputs.best_model}}'}}\n"
    ),
}

REFUSED = {
    "automl-without-task": f"{START}jobs: {{s: {{type: automl, target_column_name: y, {DATA}}}}}",
    "automl-without-target": f"{START}jobs: {{s: {{type: automl, task: regression, {DATA}}}}}",
    "automl-without-data": "jobs: {s: {type: automl, task: regression, target_column_name: y}}",
    "automl-of-another-task": _step("clustering"),
}
