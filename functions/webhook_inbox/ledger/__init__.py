"""DynamoDB: what is recorded, and every transition of a run as one conditional write."""
