"""A web application in three tiers on AWS: `fractal deploy examples/three-tier.py --wait` brings it, or says why not.

Types with classes of their own stand beside types by AWS's own names. What one needs of another is its output field,
which also orders them. Under `make up` all of it goes to the sandbox.
"""

from os import environ
from typing import Any

from fractal_cloud import LiveSystem, aws, storage
from fractal_cloud import custom_workloads as cw
from fractal_cloud import network_and_compute as nc

REGION = "eu-central-1"
ZONES = {"a": f"{REGION}a", "b": f"{REGION}b"}
EVERYWHERE = "0.0.0.0/0"
ACCOUNT = environ.get("AWS_ACCOUNT_ID", "123456789012")  # the sandbox's, unless yours is named


def role(component_id: str, service: str) -> Any:
    """A role that a service of AWS may act as, where the agent's printed rights let it make one: below the path, and
    with the boundary, beyond which no policy of it leads."""
    return aws.resource(
        "AWS::IAM::Role",
        component_id,
        RoleName=f"shop-{component_id.removesuffix('-role')}",
        Path="/fractal-cloud/",
        PermissionsBoundary=f"arn:aws:iam::{ACCOUNT}:policy/fractal-cloud/boundary",
        AssumeRolePolicyDocument=trusting(service),
    )


def trusting(service: str) -> dict[str, Any]:
    """A policy by which a service of AWS may act as a role."""
    allowed = {"Effect": "Allow", "Principal": {"Service": f"{service}.amazonaws.com"}, "Action": "sts:AssumeRole"}
    return {"Version": "2012-10-17", "Statement": [allowed]}


def allowing(*actions: str, on: str) -> dict[str, Any]:
    """A policy that allows actions on one thing."""
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": list(actions), "Resource": on}]}


# --- the network: two public subnets with a way in and out, two private ones with a way out

net = nc.aws.vpc(id="net", name="shop-net", region=REGION, cidr_block="10.0.0.0/16", enable_dns_hostnames=True)
public = {
    zone: nc.aws.subnet(id=f"public-{zone}", vpc=net, cidr_block=f"10.0.{number}.0/24", availability_zone=name)
    for number, (zone, name) in enumerate(ZONES.items())
}
private = {
    zone: nc.aws.subnet(id=f"private-{zone}", vpc=net, cidr_block=f"10.0.{number}.0/24", availability_zone=name)
    for number, (zone, name) in enumerate(ZONES.items(), 10)
}
internet = aws.resource("AWS::EC2::InternetGateway", "internet", region=REGION, name="shop-internet")
door = aws.resource(
    "AWS::EC2::VPCGatewayAttachment",
    "door",
    VpcId=net.output("vpcId"),
    InternetGatewayId=internet.output("InternetGatewayId"),
)
address = aws.resource("AWS::EC2::EIP", "nat-address", region=REGION, name="shop-nat", Domain="vpc")
nat = aws.resource(
    "AWS::EC2::NatGateway",
    "nat",
    region=REGION,
    name="shop-nat",
    SubnetId=public["a"].output("subnetId"),
    AllocationId=address.output("AllocationId"),
    dependencies=[door],
)


def routed(name: str, subnets: dict[str, nc.aws.subnet], **target: Any) -> list[Any]:
    """A route table with one route to everywhere, and the subnets that it is for."""
    table = aws.resource("AWS::EC2::RouteTable", f"{name}-routes", region=REGION, VpcId=net.output("vpcId"))
    table_id = table.output("RouteTableId")
    route = aws.resource(
        "AWS::EC2::Route",
        f"{name}-route",
        RouteTableId=table_id,
        DestinationCidrBlock=EVERYWHERE,
        dependencies=[door],
        **target,
    )
    associations = [
        aws.resource(
            "AWS::EC2::SubnetRouteTableAssociation",
            f"{name}-{zone}-routed",
            RouteTableId=table_id,
            SubnetId=subnet.output("subnetId"),
        )
        for zone, subnet in subnets.items()
    ]
    return [table, route, *associations]


routes = [
    *routed("public", public, GatewayId=internet.output("InternetGatewayId")),
    *routed("private", private, NatGatewayId=nat.output("NatGatewayId")),
]

# --- who may talk to whom

balancer_group = nc.aws.security_group(
    id="balancer-group",
    name="shop-balancer",
    vpc=net,
    description="the load balancer, open to everybody",
    ingress=[nc.aws.security_group_rule(ip_protocol="tcp", from_port=80, to_port=80, cidr_ip=EVERYWHERE)],
)
service_group = nc.aws.security_group(
    id="service-group",
    name="shop-service",
    vpc=net,
    description="the service, open to the load balancer",
    ingress=[
        nc.aws.security_group_rule(
            ip_protocol="tcp", from_port=8080, to_port=8080, referenced_group_id=balancer_group.output("groupId")
        )
    ],
)
database_group = nc.aws.security_group(
    id="database-group",
    name="shop-database",
    vpc=net,
    description="the database, open to the service",
    ingress=[
        nc.aws.security_group_rule(
            ip_protocol="tcp", from_port=5432, to_port=5432, referenced_group_id=service_group.output("groupId")
        )
    ],
)

# --- the first tier: a load balancer

balancer = aws.resource(
    "AWS::ElasticLoadBalancingV2::LoadBalancer",
    "balancer",
    region=REGION,
    Name="shop",
    Scheme="internet-facing",
    Type="application",
    Subnets=[subnet.output("subnetId") for subnet in public.values()],
    SecurityGroups=[balancer_group.output("groupId")],
    dependencies=[door],
)
targets = aws.resource(
    "AWS::ElasticLoadBalancingV2::TargetGroup",
    "targets",
    region=REGION,
    Name="shop",
    Port=8080,
    Protocol="HTTP",
    TargetType="ip",
    VpcId=net.output("vpcId"),
    HealthCheckPath="/healthz",
)
listener = aws.resource(
    "AWS::ElasticLoadBalancingV2::Listener",
    "listener",
    region=REGION,
    LoadBalancerArn=balancer.output("LoadBalancerArn"),
    Port=80,
    Protocol="HTTP",
    DefaultActions=[{"Type": "forward", "TargetGroupArn": targets.output("TargetGroupArn")}],
)

# --- the second tier: a service of containers, a queue, and a function that works it off

logs = aws.resource("AWS::Logs::LogGroup", "logs", region=REGION, LogGroupName="/shop/web", RetentionInDays=30)
jobs = aws.resource("AWS::SQS::Queue", "jobs", region=REGION, QueueName="shop-jobs", VisibilityTimeout=120)
media = aws.resource(
    "AWS::S3::Bucket",
    "media",
    region=REGION,
    BucketName="shop-media-0815",
    VersioningConfiguration={"Status": "Enabled"},
    LifecycleConfiguration={
        "Rules": [
            {"Id": "old", "Status": "Enabled", "NoncurrentVersionExpiration": {"NoncurrentDays": 30}, "Prefix": ""}
        ]
    },
)
runner = role("runner", "ecs-tasks")
writes_logs = aws.resource(
    "AWS::IAM::RolePolicy",
    "writes-logs",
    RoleName=runner.output("RoleName"),
    PolicyName="logs",
    PolicyDocument=allowing("logs:CreateLogStream", "logs:PutLogEvents", on=logs.output("Arn")),
)
web_role = role("web-role", "ecs-tasks")
sends_jobs = aws.resource(
    "AWS::IAM::RolePolicy",
    "sends-jobs",
    RoleName=web_role.output("RoleName"),
    PolicyName="jobs",
    PolicyDocument=allowing("sqs:SendMessage", on=jobs.output("Arn")),
)
cluster = cw.aws.ecs_cluster(id="cluster", name="shop", region=REGION)
web_task = aws.resource(
    "AWS::ECS::TaskDefinition",
    "web-task",
    region=REGION,
    Family="shop-web",
    Cpu="256",
    Memory="512",
    NetworkMode="awsvpc",
    RequiresCompatibilities=["FARGATE"],
    ExecutionRoleArn=runner.output("Arn"),
    TaskRoleArn=web_role.output("Arn"),
    ContainerDefinitions=[
        {
            "Name": "web",
            "Image": "public.ecr.aws/nginx/nginx:1.29",
            "Essential": True,
            "PortMappings": [{"ContainerPort": 8080, "Protocol": "tcp"}],
            "Environment": [
                {"Name": "QUEUE", "Value": jobs.output("QueueUrl")},
                {"Name": "MEDIA", "Value": f"s3://{media.output('BucketName')}/originals"},
            ],
            "LogConfiguration": {
                "LogDriver": "awslogs",
                "Options": {"awslogs-group": "/shop/web", "awslogs-region": REGION, "awslogs-stream-prefix": "web"},
            },
        }
    ],
)
web = cw.aws.ecs_service(
    id="web",
    cluster=cluster,
    task_definition=web_task.output("TaskDefinitionArn"),
    desired_count=2,
    launch_type="FARGATE",
    subnets=list(private.values()),
    security_groups=[service_group],
    dependencies=[listener, writes_logs],
)
worker_role = role("worker-role", "lambda")
receives_jobs = aws.resource(
    "AWS::IAM::RolePolicy",
    "receives-jobs",
    RoleName=worker_role.output("RoleName"),
    PolicyName="jobs",
    PolicyDocument=allowing("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", on=jobs.output("Arn")),
)
worker = aws.resource(
    "AWS::Lambda::Function",
    "worker",
    region=REGION,
    FunctionName="shop-worker",
    Runtime="python3.12",
    Handler="index.handler",
    Role=worker_role.output("Arn"),
    Code={"ZipFile": "def handler(event, context):\n    return len(event['Records'])\n"},
    Timeout=60,
)
works_off = aws.resource(
    "AWS::Lambda::EventSourceMapping",
    "works-off",
    region=REGION,
    FunctionName=worker.output("FunctionName"),
    EventSourceArn=jobs.output("Arn"),
    BatchSize=10,
    dependencies=[receives_jobs],
)

# --- the third tier: a database and a bucket

database_subnets = aws.resource(
    "AWS::RDS::DBSubnetGroup",
    "database-subnets",
    region=REGION,
    DBSubnetGroupName="shop",
    DBSubnetGroupDescription="private subnets",
    SubnetIds=[subnet.output("subnetId") for subnet in private.values()],
)
database = storage.aws.rds_postgres(
    id="database",
    name="shop",
    region=REGION,
    db_instance_class="db.t4g.micro",
    allocated_storage=20,
    vpc_security_groups=[database_group],
    db_subnet_group_name=database_subnets.output("DBSubnetGroupName"),
)
only_over_tls = aws.resource(
    "AWS::S3::BucketPolicy",
    "only-over-tls",
    Bucket=media.output("BucketName"),
    PolicyDocument={
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Deny",
                "Principal": "*",
                "Action": "s3:*",
                "Resource": [media.output("Arn"), f"{media.output('Arn')}/*"],
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            }
        ],
    },
)

# --- names and alarms

zone = aws.resource("AWS::Route53::HostedZone", "zone", Name="shop.example.")
record = aws.resource(
    "AWS::Route53::RecordSet",
    "www",
    HostedZoneId=zone.output("Id"),
    Name="www.shop.example.",
    Type="A",
    AliasTarget={
        "DNSName": balancer.output("DNSName"),
        "HostedZoneId": balancer.output("CanonicalHostedZoneID"),
        "EvaluateTargetHealth": True,
    },
)
too_many_jobs = aws.resource(
    "AWS::CloudWatch::Alarm",
    "too-many-jobs",
    region=REGION,
    AlarmName="shop-too-many-jobs",
    Namespace="AWS/SQS",
    MetricName="ApproximateNumberOfMessagesVisible",
    Dimensions=[{"Name": "QueueName", "Value": jobs.output("QueueName")}],
    Statistic="Maximum",
    Period=300,
    EvaluationPeriods=2,
    Threshold=1000,
    ComparisonOperator="GreaterThanThreshold",
)

three_tier = LiveSystem(
    id="three-tier",
    description="A load balancer, a service with a queue and a function, a database and a bucket",
    tags={"application": "shop"},
    components=[
        *(net, *public.values(), *private.values(), internet, door, address, nat, *routes),
        *(balancer_group, service_group, database_group, balancer, targets, listener),
        *(logs, jobs, media, runner, writes_logs, web_role, sends_jobs, cluster, web_task, web),
        *(worker_role, receives_jobs, worker, works_off, database_subnets, database, only_over_tls),
        *(zone, record, too_many_jobs),
    ],
)
