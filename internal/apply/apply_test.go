// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"os"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/workspace"
)

func TestMain(m *testing.M) { os.Exit(controlplane.RunMain(m)) }

// world adds to a workspace what only the tests of this package need.
type world struct{ *workspace.Workspace }

func newWorld(t *testing.T, rules ...rbacv1.PolicyRule) *world {
	t.Helper()
	return &world{Workspace: workspace.New(t, rules...)}
}
