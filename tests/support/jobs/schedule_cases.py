"""Schedules that azure-ai-ml accepts."""

from __future__ import annotations

EVERY = "trigger: {type: recurrence, frequency: minute, interval: 30}\n"


ACCEPTED = {
    "cron": (
        'trigger: {type: Cron, expression: "0 10 * * 1", start_time: "2022-07-10T10:00:00",'
        ' time_zone: "Pacific Standard Time"}\ncreate_job: ./pipeline.yml\n'
    ),
    "metadata": (
        "display_name: D\ndescription: d\ntags: {a: b}\nproperties: {c: d}\n"
        'trigger: {type: cron, expression: "0 10 * * 1", end_time: "2022-08-10 10:00:00"}\ncreate_job: ./pipeline.yml\n'
    ),
    "cron-unreadable": 'trigger: {type: cron, expression: "bogus"}\ncreate_job: ./pipeline.yml\n',
    "recurrence": (
        'trigger: {type: Recurrence, frequency: Week, interval: "2", schedule: {hours: 4, minutes: [0, 10],'
        " week_days: [Monday, tuesday]}}\ncreate_job: ./pipeline.yml\n"
    ),
    "one-day": (
        "trigger: {type: recurrence, frequency: day, interval: 1, schedule: {hours: [4, 5], minutes: 0,"
        " week_days: friday}}\ncreate_job: ./pipeline.yml\n"
    ),
    "ran-before": (
        "trigger: {type: recurrence, frequency: month, interval: 1, schedule: {hours: 4, minutes: 0, month_days: 3}}\n"
        "create_job: azureml:somejob\n"
    ),
    "ran-before-changed": (
        EVERY + "create_job: {type: pipeline, job: azureml:x, settings: {default_compute: azureml:gpu}}\n"
    ),
    "changed": EVERY + "create_job: {type: pipeline, job: ./pipeline.yml, inputs: {a: 3}, experiment_name: X}\n",
    "changed-settings": (
        EVERY + "create_job: {type: pipeline, job: ./pipeline.yml, settings: {default_compute: azureml:gpu},"
        " compute: azureml:x}\n"
    ),
    "not-enabled-is-ignored": EVERY + "is_enabled: false\ncreate_job: ./pipeline.yml\n",
}
