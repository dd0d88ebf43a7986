#!/bin/bash
# SPDX-License-Identifier: MIT
# Each ordering rule taken away makes a named test fail.
# timeout: 120
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../../scripts/check-rules"
