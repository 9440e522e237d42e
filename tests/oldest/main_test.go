// SPDX-License-Identifier: Apache-2.0

package oldest

import (
	"os"
	"testing"

	"github.com/satchel-dev/satchel/internal/worker/child"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

func TestMain(m *testing.M) {
	child.Main(jobs.Handlers())
	os.Exit(m.Run())
}
