"""A cluster of EC2 instances with two services behind one load balancer: AWS's reference architecture for ECS, whole.

What AWS's sample makes by nested stacks is one LiveSystem of 56 components here: outputs take the place of stack
outputs, functions that of templates with parameters. `fractal deploy examples/ecs-reference.py --wait` brings it.
"""

from base64 import b64encode
from os import environ
from typing import Any

from fractal_cloud import LiveSystem, aws
from fractal_cloud import custom_workloads as cw
from fractal_cloud import network_and_compute as nc

REGION = "eu-central-1"
ZONES = {"a": f"{REGION}a", "b": f"{REGION}b"}
EVERYWHERE = "0.0.0.0/0"
PATH = "/fractal-cloud/"  # below it, and with the boundary, the agent's printed rights let it make identities
ACCOUNT = environ.get("AWS_ACCOUNT_ID", "123456789012")  # the sandbox's, unless yours is named
CLUSTER = "reference"
IMAGE = "ami-0123456789abcdef0"
MANAGED = "arn:aws:iam::aws:policy"


def resource(component_type: str, component_id: str, **parameters: Any) -> Any:
    """A component in the region of all."""
    return aws.resource(component_type, component_id, region=REGION, **parameters)


def allowing(*actions: str, on: str = "*") -> dict[str, Any]:
    """A policy that allows actions."""
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": list(actions), "Resource": on}]}


def role(component_id: str, service: str, policy: dict[str, Any] | None = None, *managed: str) -> Any:
    """A role that a service of AWS may act as."""
    trusted = {"Effect": "Allow", "Principal": {"Service": f"{service}.amazonaws.com"}, "Action": "sts:AssumeRole"}
    inline: dict[str, Any] = {"Policies": [{"PolicyName": component_id, "PolicyDocument": policy}]} if policy else {}
    attached: dict[str, Any] = {"ManagedPolicyArns": [f"{MANAGED}/{one}" for one in managed]} if managed else {}
    return aws.resource(
        "AWS::IAM::Role",
        component_id,
        RoleName=f"{CLUSTER}-{component_id}",
        Path=PATH,
        PermissionsBoundary=f"arn:aws:iam::{ACCOUNT}:policy{PATH}boundary",
        AssumeRolePolicyDocument={"Version": "2012-10-17", "Statement": [trusted]},
        **inline,
        **attached,
    )


# --- the network: in each of two zones a public subnet with a NAT gateway, and a private one that goes out by it

net = nc.aws.vpc(id="vpc", name=CLUSTER, region=REGION, cidr_block="10.180.0.0/16", enable_dns_hostnames=True)
internet = resource("AWS::EC2::InternetGateway", "internet", name=CLUSTER)
attachment = aws.resource(
    "AWS::EC2::VPCGatewayAttachment",
    "internet-attachment",
    VpcId=net.output("vpcId"),
    InternetGatewayId=internet.output("InternetGatewayId"),
)
public = [
    nc.aws.subnet(
        id=f"public-{zone}",
        name=f"{CLUSTER} Public Subnet ({zone.upper()})",
        vpc=net,
        cidr_block=f"10.180.{8 * number}.0/21",
        availability_zone=name,
        map_public_ip_on_launch=True,
    )
    for number, (zone, name) in enumerate(ZONES.items(), 1)
]
private = [
    nc.aws.subnet(
        id=f"private-{zone}",
        name=f"{CLUSTER} Private Subnet ({zone.upper()})",
        vpc=net,
        cidr_block=f"10.180.{8 * number}.0/21",
        availability_zone=name,
    )
    for number, (zone, name) in enumerate(ZONES.items(), 3)
]
addresses = [resource("AWS::EC2::EIP", f"nat-address-{zone}", Domain="vpc") for zone in ZONES]
gateways = [
    resource(
        "AWS::EC2::NatGateway",
        f"nat-{zone}",
        AllocationId=address.output("AllocationId"),
        SubnetId=subnet.output("subnetId"),
        dependencies=[attachment],
    )
    for zone, address, subnet in zip(ZONES, addresses, public, strict=True)
]


def routed(name: str, subnets: list[nc.aws.subnet], **target: Any) -> list[Any]:
    """A route table with its route to everywhere, and the subnets that it is for."""
    table = resource("AWS::EC2::RouteTable", f"{name}-routes", name=f"{CLUSTER} {name}", VpcId=net.output("vpcId"))
    return [
        table,
        aws.resource(
            "AWS::EC2::Route",
            f"{name}-default-route",
            RouteTableId=table.output("RouteTableId"),
            DestinationCidrBlock=EVERYWHERE,
            dependencies=[attachment],
            **target,
        ),
        *(
            aws.resource(
                "AWS::EC2::SubnetRouteTableAssociation",
                f"{subnet.id}-routed",
                RouteTableId=table.output("RouteTableId"),
                SubnetId=subnet.output("subnetId"),
            )
            for subnet in subnets
        ),
    ]


routes = routed("public", public, GatewayId=internet.output("InternetGatewayId"))
for zone, gateway, subnet in zip(ZONES, gateways, private, strict=True):
    routes += routed(f"private-{zone}", [subnet], NatGatewayId=gateway.output("NatGatewayId"))

# --- who may talk to whom

balancer_group = nc.aws.security_group(
    id="balancer-group",
    name=f"{CLUSTER}-balancer",
    vpc=net,
    description="The load balancer, open to everybody",
    ingress=[nc.aws.security_group_rule(ip_protocol="-1", cidr_ip=EVERYWHERE)],
)
host_group = nc.aws.security_group(
    id="host-group",
    name=f"{CLUSTER}-hosts",
    vpc=net,
    description="The instances and their containers, open to the load balancer",
    ingress=[nc.aws.security_group_rule(ip_protocol="-1", referenced_group_id=balancer_group.output("groupId"))],
)

# --- the load balancer, which sends on what no service asks for to a group without targets

balancer = resource(
    "AWS::ElasticLoadBalancingV2::LoadBalancer",
    "balancer",
    Name=CLUSTER,
    Subnets=[subnet.output("subnetId") for subnet in public],
    SecurityGroups=[balancer_group.output("groupId")],
    dependencies=[attachment],
)


def target_group(component_id: str, health: str) -> Any:
    """Where the load balancer finds the containers of a service."""
    return resource(
        "AWS::ElasticLoadBalancingV2::TargetGroup",
        component_id,
        Name=f"{CLUSTER}-{component_id}",
        VpcId=net.output("vpcId"),
        Port=80,
        Protocol="HTTP",
        Matcher={"HttpCode": "200-299"},
        HealthCheckIntervalSeconds=10,
        HealthCheckPath=health,
        HealthCheckProtocol="HTTP",
        HealthCheckTimeoutSeconds=5,
        HealthyThresholdCount=2,
        TargetGroupAttributes=[{"Key": "deregistration_delay.timeout_seconds", "Value": "30"}],
    )


nobody = target_group("no-service", "/")
listener = resource(
    "AWS::ElasticLoadBalancingV2::Listener",
    "listener",
    LoadBalancerArn=balancer.output("LoadBalancerArn"),
    Port=80,
    Protocol="HTTP",
    DefaultActions=[{"Type": "forward", "TargetGroupArn": nobody.output("TargetGroupArn")}],
)

# --- the instances of the cluster

cluster = cw.aws.ecs_cluster(id="cluster", name=CLUSTER, region=REGION)
host_role = role(
    "host",
    "ec2",
    allowing("ecs:*Container*", "ecs:Poll", "ecs:StartTelemetrySession", "logs:CreateLogStream", "logs:PutLogEvents"),
    "AmazonSSMManagedInstanceCore",
    "CloudWatchAgentServerPolicy",
)
profile = aws.resource(
    "AWS::IAM::InstanceProfile",
    "host-profile",
    InstanceProfileName=f"{CLUSTER}-host",
    Path=PATH,
    Roles=[host_role.output("RoleName")],
)
monitoring = resource(
    "AWS::SSM::Parameter",
    "monitoring",
    Name=f"/{CLUSTER}/amazon-cloudwatch-agent",
    Type="String",
    Value='{"logs": {"force_flush_interval": 5}, "metrics": {"metrics_collected": {"mem": {"measurement": ["used"]}}}}',
)
template = resource(
    "AWS::EC2::LaunchTemplate",
    "host-template",
    LaunchTemplateName=f"{CLUSTER}-host",
    LaunchTemplateData={
        "ImageId": IMAGE,
        "InstanceType": "t3.large",
        "IamInstanceProfile": {"Arn": profile.output("Arn")},
        "SecurityGroupIds": [host_group.output("groupId")],
        "MetadataOptions": {"HttpTokens": "required"},
        "UserData": b64encode(f"#!/bin/bash\necho ECS_CLUSTER={CLUSTER} >> /etc/ecs/ecs.config\n".encode()).decode(),
    },
)
hosts = resource(
    "AWS::AutoScaling::AutoScalingGroup",
    "hosts",
    AutoScalingGroupName=f"{CLUSTER}-hosts",
    VPCZoneIdentifier=[subnet.output("subnetId") for subnet in private],
    LaunchTemplate={
        "LaunchTemplateId": template.output("LaunchTemplateId"),
        "Version": template.output("LatestVersionNumber"),
    },
    MinSize="4",
    MaxSize="4",
    DesiredCapacity="4",
    dependencies=[monitoring],
)

# --- instances that are to end have their tasks taken elsewhere first

ending = resource("AWS::SNS::Topic", "ending-hosts", TopicName=f"{CLUSTER}-ending-hosts")
notifier = role("notifier", "autoscaling", None, "service-role/AutoScalingNotificationAccessRole")
drainer_role = role("drainer", "lambda", allowing("autoscaling:CompleteLifecycleAction", "ecs:*ContainerInstance*"))
drainer = resource(
    "AWS::Lambda::Function",
    "drainer-function",
    FunctionName=f"{CLUSTER}-drainer",
    Runtime="python3.12",
    Handler="index.handler",
    Role=drainer_role.output("Arn"),
    Timeout=300,
    Environment={"Variables": {"CLUSTER": CLUSTER}},
    Code={"ZipFile": "def handler(event, context):\n    return [one['Sns']['Message'] for one in event['Records']]\n"},
)
may_call = aws.resource(
    "AWS::Lambda::Permission",
    "topic-calls-drainer",
    FunctionName=drainer.output("FunctionName"),
    Action="lambda:InvokeFunction",
    Principal="sns.amazonaws.com",
    SourceArn=ending.output("TopicArn"),
)
subscription = aws.resource(
    "AWS::SNS::Subscription",
    "drainer-subscription",
    TopicArn=ending.output("TopicArn"),
    Protocol="lambda",
    Endpoint=drainer.output("Arn"),
    dependencies=[may_call],
)
hook = aws.resource(
    "AWS::AutoScaling::LifecycleHook",
    "before-a-host-ends",
    AutoScalingGroupName=hosts.output("AutoScalingGroupName"),
    LifecycleHookName="before-a-host-ends",
    LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
    DefaultResult="ABANDON",
    HeartbeatTimeout=900,
    NotificationTargetARN=ending.output("TopicArn"),
    RoleARN=notifier.output("Arn"),
    dependencies=[subscription],
)

# --- the services

execution_role = role("execution", "ecs-tasks", None, "service-role/AmazonECSTaskExecutionRolePolicy")


def service(name: str, port: int, path: str, priority: int, **settings: Any) -> list[Any]:
    """A service of containers on the instances, what it logs to, and the requests that it takes."""
    logs = resource("AWS::Logs::LogGroup", f"{name}-logs", LogGroupName=f"/{CLUSTER}/{name}", RetentionInDays=30)
    task = resource(
        "AWS::ECS::TaskDefinition",
        f"{name}-task",
        Family=f"{CLUSTER}-{name}",
        ExecutionRoleArn=execution_role.output("Arn"),
        ContainerDefinitions=[
            {
                "Name": name,
                "Image": f"public.ecr.aws/nginx/nginx:{settings.pop('version', '1.29')}",
                "Essential": True,
                "Memory": 128,
                "PortMappings": [{"ContainerPort": port}],
                "LogConfiguration": {
                    "LogDriver": "awslogs",
                    "Options": {"awslogs-group": logs.output("LogGroupName"), "awslogs-region": REGION},
                },
                **settings,
            }
        ],
    )
    targets = target_group(f"{name}-targets", f"{path.rstrip('*')}health".replace("//", "/"))
    rule = resource(
        "AWS::ElasticLoadBalancingV2::ListenerRule",
        f"{name}-rule",
        ListenerArn=listener.output("ListenerArn"),
        Priority=priority,
        Conditions=[{"Field": "path-pattern", "PathPatternConfig": {"Values": [path]}}],
        Actions=[{"Type": "forward", "TargetGroupArn": targets.output("TargetGroupArn")}],
    )
    running = cw.aws.ecs_service(
        id=name,
        cluster=cluster,
        task_definition=task.output("TaskDefinitionArn"),
        launch_type="EC2",
        desired_count=2,
        health_check_grace_period_seconds=60,
        load_balancers=[
            cw.aws.service_load_balancer(
                target_group_arn=targets.output("TargetGroupArn"), container_name=name, container_port=port
            )
        ],
        ignore_drift=["desiredCount"],
        dependencies=[rule, hosts],
    )
    return [logs, task, targets, rule, running]


products = service("products", 8001, "/products*", 1)
website = service(
    "website",
    8000,
    "/",
    2,
    Environment=[{"Name": "PRODUCT_SERVICE_URL", "Value": f"http://{balancer.output('DNSName')}/products"}],
)

# --- the website grows and shrinks with its load

scaler = role(
    "scaler", "application-autoscaling", allowing("ecs:DescribeServices", "ecs:UpdateService", "cloudwatch:*Alarm*")
)
range_of_website = resource(
    "AWS::ApplicationAutoScaling::ScalableTarget",
    "website-range",
    ServiceNamespace="ecs",
    ScalableDimension="ecs:service:DesiredCount",
    ResourceId=f"service/{CLUSTER}/website",
    MinCapacity=2,
    MaxCapacity=6,
    RoleARN=scaler.output("Arn"),
    dependencies=[website[-1]],
)


def scaling(name: str, by: int, comparison: str, percent: int) -> list[Any]:
    """A step that the website is scaled by, and the alarm that takes it."""
    end = "MetricIntervalLowerBound" if by > 0 else "MetricIntervalUpperBound"
    policy = aws.resource(
        "AWS::ApplicationAutoScaling::ScalingPolicy",
        f"website-{name}",
        ScalingTargetId=range_of_website.output("Id"),
        PolicyName=f"website-{name}",
        PolicyType="StepScaling",
        StepScalingPolicyConfiguration={
            "AdjustmentType": "ChangeInCapacity",
            "Cooldown": 60,
            "MetricAggregationType": "Average",
            "StepAdjustments": [{end: 0, "ScalingAdjustment": by}],
        },
    )
    alarm = resource(
        "AWS::CloudWatch::Alarm",
        f"website-{name}-alarm",
        AlarmName=f"{CLUSTER}-website-{name}",
        AlarmDescription=f"The website's containers use {percent} % of their CPU",
        Namespace="AWS/ECS",
        MetricName="CPUUtilization",
        Dimensions=[{"Name": "ClusterName", "Value": CLUSTER}, {"Name": "ServiceName", "Value": "website"}],
        Statistic="Average",
        Period=60,
        EvaluationPeriods=3,
        Threshold=percent,
        ComparisonOperator=comparison,
        AlarmActions=[policy.output("Arn")],
    )
    return [policy, alarm]


ecs_reference = LiveSystem(
    id="ecs-reference",
    description="AWS's reference architecture for ECS: instances in private subnets, two services, one load balancer",
    tags={"application": CLUSTER},
    components=[
        *(net, internet, attachment, *public, *private, *addresses, *gateways, *routes),
        *(balancer_group, host_group, balancer, nobody, listener),
        *(cluster, host_role, profile, monitoring, template, hosts),
        *(ending, notifier, drainer_role, drainer, may_call, subscription, hook),
        *(execution_role, *products, *website, scaler, range_of_website),
        *scaling("out", 2, "GreaterThanOrEqualToThreshold", 75),
        *scaling("in", -1, "LessThanOrEqualToThreshold", 20),
    ],
)
