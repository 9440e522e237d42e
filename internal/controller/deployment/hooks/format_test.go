// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"testing"

	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/tests/formats"
)

func TestF56Runs(t *testing.T) {
	formats.Golden(t, format.HookRun, []byte(shortDigest(format.HookRun.Purpose("hook-run"), "uid", "Install", "material")+"\n"))
}
