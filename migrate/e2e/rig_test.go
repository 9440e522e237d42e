// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/satchel-dev/satchel/internal/worker/child"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/e2erig"
)

func TestMain(m *testing.M) {
	child.Main(jobs.Handlers())
	code := controlplane.RunMain(m)
	if shared.rig != nil {
		shared.rig.Close()
	}
	os.Exit(code)
}

var shared struct {
	once sync.Once
	rig  *e2erig.Rig
	err  error
}

func newRig(t *testing.T) *e2erig.Rig {
	t.Helper()
	cp := controlplane.Shared(t)
	shared.once.Do(func() {
		shared.rig, shared.err = e2erig.New(context.Background(), cp, e2erig.Options{}) // it runs as long as the test binary
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.rig
}
