"""Any kind of a cluster by its own name (`batch/v1/CronJob`): built in, or brought by a CustomResourceDefinition."""
