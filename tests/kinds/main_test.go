// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"os"
	"testing"

	"github.com/satchel-dev/satchel/internal/worker"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

func TestMain(m *testing.M) {
	worker.Main(jobs.Handlers())
	os.Exit(m.Run())
}
