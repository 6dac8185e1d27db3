"""Types that hold data: gone with the resource, and not made again by declaring it (S4a).

Source: for every row, the service's own description of what the resource stores; backups and snapshots count, what is
only computed from other data (indexes of a search service that holds the documents, caches) counts where AWS offers
snapshots of it.
"""

from __future__ import annotations

from typing import Final

_BY_SERVICE: Final[dict[str, tuple[str, ...]]] = {
    # Objects and files.
    "S3": ("Bucket",),
    "S3Express": ("DirectoryBucket",),
    "S3Tables": ("TableBucket", "Table"),
    "S3Vectors": ("VectorBucket", "Index"),
    "S3Outposts": ("Bucket",),
    "S3Files": ("FileSystem",),
    "EFS": ("FileSystem",),
    "FSx": ("FileSystem", "Volume", "StorageVirtualMachine", "Snapshot", "Backup", "FileCache"),
    "EC2": ("Volume",),
    "Lightsail": ("Bucket", "Database", "Disk", "DiskSnapshot", "DatabaseSnapshot", "InstanceSnapshot", "Instance"),
    "StorageGateway": ("Volume", "Tape", "NFSFileShare", "SMBFileShare"),
    "Backup": ("BackupVault", "LogicallyAirGappedBackupVault"),
    "ECR": ("Repository", "PublicRepository"),
    "CodeCommit": ("Repository",),
    "CodeArtifact": ("Domain", "Repository"),
    # Databases.
    "RDS": ("DBInstance", "DBCluster", "GlobalCluster", "CustomDBEngineVersion", "ClusterSnapshot", "DBSnapshot"),
    "DocDB": ("DBCluster", "DBInstance", "GlobalCluster"),
    "DocDBElastic": ("Cluster", "ClusterSnapshot"),
    "Neptune": ("DBCluster", "DBInstance", "GlobalCluster"),
    "NeptuneGraph": ("Graph", "GraphSnapshot"),
    "DynamoDB": ("Table", "GlobalTable", "Backup"),
    "Cassandra": ("Keyspace", "Table"),
    "DSQL": ("Cluster",),
    "Timestream": ("Database", "Table", "InfluxDBInstance", "InfluxDBCluster"),
    "QLDB": ("Ledger",),
    "MemoryDB": ("Cluster", "MultiRegionCluster", "Snapshot"),
    "ElastiCache": ("CacheCluster", "ReplicationGroup", "ServerlessCache", "GlobalReplicationGroup", "Snapshot"),
    "DAX": ("Cluster",),
    "Redshift": ("Cluster",),
    "RedshiftServerless": ("Namespace", "Snapshot"),
    "OpenSearchService": ("Domain",),
    "OpenSearchServerless": ("Collection",),
    "Elasticsearch": ("Domain",),
    "SDB": ("Domain",),
    "ODB": ("CloudVmCluster", "CloudAutonomousVmCluster", "CloudExadataInfrastructure"),
    # Streams, queues and logs.
    "Kinesis": ("Stream",),
    "KinesisVideo": ("Stream",),
    "MSK": ("Cluster", "ServerlessCluster"),
    "SQS": ("Queue",),
    "AmazonMQ": ("Broker",),
    "Events": ("Archive",),
    "Logs": ("LogGroup", "LogStream"),
    "CloudTrail": ("EventDataStore",),
    "APS": ("Workspace",),
    # Keys, secrets and identities of users.
    "KMS": ("Key", "ReplicaKey"),
    "PaymentCryptography": ("Key",),
    "CloudHSM": ("Cluster",),
    "SecretsManager": ("Secret",),
    "SSM": ("Parameter",),
    "ACMPCA": ("CertificateAuthority",),
    "Cognito": ("UserPool", "IdentityPool"),
    "DirectoryService": ("MicrosoftAD", "SimpleAD"),
    "IdentityStore": ("User", "Group"),
    "VerifiedPermissions": ("PolicyStore",),
    # Catalogues and stores of models and applications.
    "Glue": ("Database", "Table", "Catalog", "Registry", "Schema", "MLTransform"),
    "DataZone": ("Domain", "Project"),
    "HealthLake": ("FHIRDatastore",),
    "HealthImaging": ("Datastore",),
    "Omics": ("SequenceStore", "ReferenceStore", "AnnotationStore", "VariantStore"),
    "SageMaker": ("FeatureGroup", "Domain", "NotebookInstance", "Space", "ModelPackageGroup", "MlflowTrackingServer"),
    "Bedrock": ("KnowledgeBase",),
    "BedrockAgentCore": ("Memory",),
    "Kendra": ("Index",),
    "QBusiness": ("Index",),
    "Personalize": ("Dataset", "DatasetGroup"),
    "Forecast": ("Dataset", "DatasetGroup"),
    "Rekognition": ("Collection", "Dataset"),
    "Location": ("GeofenceCollection", "Tracker"),
    "IoTAnalytics": ("Datastore", "Dataset"),
    "IoTSiteWise": ("Asset", "Dataset"),
    "IoTTwinMaker": ("Workspace", "Entity"),
    "IoTFleetWise": ("SignalCatalog",),
    "SecurityLake": ("DataLake",),
    "Connect": ("Instance",),
    "CustomerProfiles": ("Domain",),
    "Cases": ("Domain", "Case"),
    "Wisdom": ("KnowledgeBase",),
    "WorkSpaces": ("Workspace",),
    "WorkspacesInstances": ("WorkspaceInstance", "Volume"),
    "SES": ("MailManagerArchive",),
    "Deadline": ("Farm",),
    "CleanRooms": ("Collaboration",),
    "FinSpace": ("Environment",),
    "ManagedBlockchain": ("Member", "Node"),
    "Route53": ("HostedZone",),
    "Grafana": ("Workspace",),
    "Transfer": ("User",),
    "EVS": ("Environment",),
}

HOLDS_DATA: Final = frozenset(f"AWS::{service}::{noun}" for service, nouns in _BY_SERVICE.items() for noun in nouns)


def holds_data(name: str) -> bool:
    """Whether what people put into a resource of this type is lost with it."""
    return name in HOLDS_DATA
