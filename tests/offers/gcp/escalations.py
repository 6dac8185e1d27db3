"""Published ways from permissions in a project to more of them: what each takes, and who described it.

``RHINO``: Rhino Security Labs, «IAM Privilege Escalation in GCP» (the methods of its scanner, by their names there).
``HACKTRICKS``: HackTricks Cloud, «GCP Privilege Escalation», as far as it concerns services that the agent works with.
"""

from __future__ import annotations

from typing import Final

ACT_AS: Final = "iam.serviceAccounts.actAs"
RHINO: Final[dict[str, frozenset[str]]] = {
    name: frozenset(permissions)
    for name, permissions in {
        "UpdateIAMRole": ["iam.roles.update"],
        "CreateServiceAccountKey": ["iam.serviceAccountKeys.create"],
        "GetServiceAccountAccessToken": ["iam.serviceAccounts.getAccessToken"],
        "ServiceAccountImplicitDelegation": ["iam.serviceAccounts.implicitDelegation"],
        "ServiceAccountSignBlob": ["iam.serviceAccounts.signBlob"],
        "ServiceAccountSignJwt": ["iam.serviceAccounts.signJwt"],
        "SetOrgPolicyConstraints": ["orgpolicy.policy.set"],
        "CreateServiceAccountHMACKey": ["storage.hmacKeys.create"],
        "CreateDeploymentManagerDeployment": ["deploymentmanager.deployments.create"],
        "RCECloudBuildBuildServer": ["cloudbuild.builds.create"],
        "ExfilCloudFunctionCredsAuthCall": [
            *("cloudfunctions.functions.create", "cloudfunctions.functions.sourceCodeSet"),
            *(ACT_AS, "cloudfunctions.functions.call"),
        ],
        "ExfilCloudFunctionCredsUnauthCall": [
            *("cloudfunctions.functions.create", "cloudfunctions.functions.sourceCodeSet"),
            *(ACT_AS, "cloudfunctions.functions.setIamPolicy"),
        ],
        "UpdateCloudFunction": ["cloudfunctions.functions.sourceCodeSet", "cloudfunctions.functions.update", ACT_AS],
        "CreateGCEInstanceWithSA": [
            *("compute.disks.create", "compute.instances.create", "compute.instances.setMetadata"),
            *("compute.instances.setServiceAccount", "compute.subnetworks.use", "compute.subnetworks.useExternalIp"),
            ACT_AS,
        ],
        "ExfilCloudRunServiceUnauthCall": ["run.services.create", ACT_AS, "run.services.setIamPolicy"],
        "ExfilCloudRunServiceAuthCall": ["run.services.create", ACT_AS, "run.routes.invoke"],
        "CreateAPIKey": ["serviceusage.apiKeys.create"],
        "ViewExistingAPIKeys": ["serviceusage.apiKeys.list"],
        "SetOrgIAMPolicy": ["resourcemanager.organizations.setIamPolicy"],
        "SetFolderIAMPolicy": ["resourcemanager.folders.setIamPolicy"],
        "SetProjectIAMPolicy": ["resourcemanager.projects.setIamPolicy"],
        "SetServiceAccountIAMPolicy": ["iam.serviceAccounts.setIamPolicy"],
        "CreateCloudSchedulerHTTPRequest": ["cloudscheduler.jobs.create", "cloudscheduler.locations.list", ACT_AS],
    }.items()
}
HACKTRICKS: Final[dict[str, frozenset[str]]] = {
    name: frozenset(permissions)
    for name, permissions in {
        "metadata of all machines": ["compute.projects.setCommonInstanceMetadata"],
        "metadata of a machine that acts as somebody": ["compute.instances.setMetadata", ACT_AS],
        "log in to a machine": ["compute.instances.osLogin"],
        "log in to a machine as root": ["compute.instances.osAdminLogin"],
        "rights on a machine": ["compute.instances.setIamPolicy"],
        "another account for a machine": ["compute.instances.setServiceAccount", ACT_AS],
        "machines of a template": ["compute.instanceTemplates.create", "compute.instanceGroupManagers.update", ACT_AS],
        "a machine's whole definition": ["compute.instances.update", ACT_AS],
        "attach somebody's disk": ["compute.instances.attachDisk", "compute.disks.use"],
        "read somebody's disk by a snapshot": ["compute.snapshots.create", "compute.disks.createSnapshot"],
        "an old snapshot": ["compute.snapshots.useReadOnly", "compute.disks.create"],
        "a new Cloud Run service": ["run.services.create", ACT_AS],
        "another image of a Cloud Run service": ["run.services.update", ACT_AS],
        "who may call a Cloud Run service": ["run.services.setIamPolicy"],
        "a Cloud Run job": ["run.jobs.create", "run.jobs.run", ACT_AS],
        "another image of a Cloud Run job": ["run.jobs.update", "run.jobs.run", ACT_AS],
        "a cluster whose nodes act as somebody": ["container.clusters.create", ACT_AS],
        "credentials of a cluster": ["container.clusters.getCredentials"],
        "run in a pod": ["container.pods.exec"],
        "a pod": ["container.pods.create"],
        "a workload": ["container.deployments.create"],
        "secrets of a cluster": ["container.secrets.get"],
        "rights in a cluster": ["container.clusterRoleBindings.create"],
        "escalate in a cluster": ["container.clusterRoles.escalate"],
        "bind in a cluster": ["container.clusterRoles.bind"],
        "a token in a cluster": ["container.serviceAccounts.createToken"],
        "a webhook in a cluster": ["container.mutatingWebhookConfigurations.create"],
        "a database's user": ["cloudsql.users.create"],
        "the password of a database's user": ["cloudsql.users.update"],
        "log in to a database": ["cloudsql.instances.login", "cloudsql.instances.connect"],
        "export a database": ["cloudsql.instances.export"],
        "copy a database": ["cloudsql.instances.clone"],
        "restore a database": ["cloudsql.instances.restoreBackup"],
        "read objects": ["storage.objects.get"],
        "write objects": ["storage.objects.create"],
        "rights on an object": ["storage.objects.setIamPolicy"],
        "rights on a bucket": ["storage.buckets.setIamPolicy"],
        "an identity token": ["iam.serviceAccounts.getOpenIdToken"],
        "a pool of foreign identities": ["iam.workloadIdentityPoolProviders.create"],
        "a role": ["iam.roles.create"],
        "a secret": ["secretmanager.versions.access"],
        "decrypt": ["cloudkms.cryptoKeyVersions.useToDecrypt"],
        "a token for an API key": ["apikeys.keys.getKeyString"],
        "what machines run by policy": ["osconfig.patchDeployments.create"],
    }.items()
}
PATHS: Final = {
    **{f"Rhino: {name}": one for name, one in RHINO.items()},
    **{f"HackTricks: {name}": one for name, one in HACKTRICKS.items()},
}
