// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/tests/installation"
)

// F30: the previous commit's build installs deployments, this one takes them over, and the
// previous one takes them back. No object is written where the render is the same.
func TestF30ControllerUpgrade(t *testing.T) {
	releaseOnly(t)
	r := newRig(t)
	previous := r.buildPrevious(t)
	r.Kill(deploymentController)
	t.Cleanup(func() {
		if err := r.Start(deploymentController); err != nil {
			t.Error(err)
		}
	})
	namespace, cache := r.Namespace(t), t.TempDir()
	arguments := []string{"--cache-path=" + cache}
	old := r.instanceOf(t, previous, deploymentController, "previous", arguments...)
	const deployments = 50
	keys := make([]client.ObjectKey, 0, deployments)
	for i := range deployments {
		name := fmt.Sprintf("app-%02d", i)
		keys = append(keys, r.Deploy(t, namespace, name, r.Push(t, "f30-"+name+":v1", configMaps(name, 4)), nil))
	}
	for _, key := range keys {
		r.Ready(t, key)
	}
	old.leave()
	for _, program := range []string{r.File(deploymentController), previous} {
		mark := r.mark(t)
		next := r.instanceOf(t, program, deploymentController, filepath.Base(filepath.Dir(program)), arguments...)
		requested := r.request(t, keys)
		for _, key := range keys {
			r.handled(t, key, requested)
		}
		next.quietly(t, r, namespace)
		for _, written := range r.writes(t, mark, namespace) {
			if !strings.Contains(written, "/bundledeployments/") && !strings.Contains(written, "/bundlesources/") {
				t.Errorf("written by %s: %s", program, written)
			}
		}
		if program == previous {
			for _, key := range keys {
				r.Remove(t, key)
			}
		}
		next.leave()
	}
}

// quietly wants nothing to be written any more while an instance runs.
func (i *instance) quietly(t *testing.T, r *rig, namespace string) {
	t.Helper()
	r.waitForNoWrites(t, namespace)
	r.quiet(t, namespace, 6*time.Second)
	select {
	case <-i.ended:
		t.Errorf("%s ended: %v", i.name, i.failed)
	default:
	}
}

// buildPrevious builds the deployment controller of the commit before this one.
func (r *rig) buildPrevious(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, command := range [][]string{
		{"git", "clone", "--quiet", "--shared", installation.Root(), dir + "/source"},
		{"git", "-C", dir + "/source", "checkout", "--quiet", "HEAD~1"},
		{"go", "build", "-C", dir + "/source", "-o", dir + "/previous/", "./cmd/" + deploymentController},
	} {
		if output, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("there is no previous build to go from: %v\n%s", err, output)
		}
	}
	return filepath.Join(dir, "previous", deploymentController)
}
