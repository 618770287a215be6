"""AWS's list prices in dollars, in us-east-1, without the free tier and taxes.

Another region differs, most by less than a third. Each price was compared with a public copy of
AWS's price list or with a page that quotes AWS's price page, as docs/cost.md lists; none could be
read from AWS itself.
"""

from typing import Final

REGION: Final = "us-east-1"
# When they were compared.
DATE: Final = "2026-11-23"
PRICES_OF: Final = f"list prices in {REGION}"

# Dollars for a million.
API_REQUESTS: Final = 1.00  # of an HTTP API, of up to 512 KB
LAMBDA_REQUESTS: Final = 0.20
WRITE_UNITS: Final = 0.625
READ_UNITS: Final = 0.125
SQS_REQUESTS: Final = 0.40  # of a standard queue, of up to 64 KB
S3_PUTS: Final = 5.00
S3_GETS: Final = 0.40
SECRET_READS: Final = 5.00
METRIC_READS: Final = 10.00  # metrics of GetMetricData, requests of GetMetricStatistics
SNS_REQUESTS: Final = 0.50  # publishing; deliveries cost more

# Dollars for a GB, or for a GB and second or month.
LAMBDA_GB_SECOND: Final = 0.0000133334  # on arm64
TABLE_GB_MONTH: Final = 0.25
RECOVERY_GB_MONTH: Final = 0.20  # point-in-time recovery; of the table, not of its indexes
S3_GB_MONTH: Final = 0.023
LOG_GB: Final = 0.50
LOG_GB_MONTH: Final = 0.03

# Dollars a month.
METRIC: Final = 0.30  # each combination of dimension values, in the hours in which it is written
ALARM_METRIC: Final = 0.10  # each metric of an alarm
COMPOSITE_ALARM: Final = 0.50
DASHBOARD: Final = 3.00  # after the first three of an account
SECRET: Final = 0.40
