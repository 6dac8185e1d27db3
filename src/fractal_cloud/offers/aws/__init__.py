"""The component types of AWS; cloud.py alone knows boto3, and nothing here decides."""
