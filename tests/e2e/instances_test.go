// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// instance is a process of a controller beside those of the rig.
type instance struct {
	name    string
	process *exec.Cmd
	ended   chan struct{}
	failed  error // how it ended, when ended is closed
}

// alone stops the controllers of the rig until the test is over, so that only the
// instances of a test work.
func (r *rig) alone(t *testing.T) {
	t.Helper()
	r.Kill(sourceController)
	r.Kill(deploymentController)
	t.Cleanup(func() {
		for _, name := range []string{sourceController, deploymentController} {
			if err := r.Start(name); err != nil {
				t.Error(err)
			}
		}
	})
}

// instance starts a controller with arguments of its own after those of the rig.
func (r *rig) instance(t *testing.T, controller, name string, arguments ...string) *instance {
	t.Helper()
	return r.instanceOf(t, r.File(controller), controller, name, arguments...)
}

// instanceOf starts a given build of a controller.
func (r *rig) instanceOf(t *testing.T, program, controller, name string, arguments ...string) *instance {
	t.Helper()
	process, err := r.Launch(name, program, slices.Concat(r.Arguments[controller], arguments))
	if err != nil {
		t.Fatal(err)
	}
	i := &instance{name: name, process: process, ended: make(chan struct{})}
	go func() {
		i.failed = process.Wait()
		close(i.ended)
	}()
	t.Cleanup(func() { i.kill() })
	return i
}

// kill ends an instance as a crash would, and waits until it is gone.
func (i *instance) kill() {
	_ = i.process.Process.Signal(syscall.SIGKILL)
	<-i.ended
}

// signal sends an instance a signal.
func (i *instance) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := i.process.Process.Signal(signal); err != nil {
		t.Fatalf("sending %s to %s: %v", signal, i.name, err)
	}
}

// end asks an instance to end, and returns how long that took and how it ended.
func (i *instance) end(t *testing.T) (time.Duration, error) {
	t.Helper()
	began := time.Now()
	i.signal(t, syscall.SIGTERM)
	select {
	case <-i.ended:
	case <-time.After(patience):
		t.Fatalf("%s goes on after SIGTERM", i.name)
	}
	return time.Since(began), i.failed
}

// leave asks an instance to end, if it runs, so that it gives its lease up.
func (i *instance) leave() {
	_ = i.process.Process.Signal(syscall.SIGTERM)
	<-i.ended
}

// sources starts a source controller of a test with storage of its own, and returns the
// URL of its artifacts.
func (r *rig) sources(t *testing.T, name string, arguments ...string) (*instance, string) {
	t.Helper()
	addr, err := controlplane.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return r.instance(t, sourceController, name, append([]string{
		"--storage-path=" + filepath.Join(t.TempDir(), "data"), "--storage-addr=" + addr, "--storage-adv-addr=" + addr, "--upload-addr=",
	}, arguments...)...), "http://" + addr
}

// deployments starts a deployment controller of a test with a cache of its own.
func (r *rig) deployments(t *testing.T, name string, servers []string, arguments ...string) *instance {
	t.Helper()
	return r.instance(t, deploymentController, name, append([]string{
		"--cache-path=" + t.TempDir(), "--artifact-servers=" + strings.Join(servers, ","),
	}, arguments...)...)
}

// reading gives a check that reads an object each time.
func (r *rig) reading(key client.ObjectKey, check func(*v1alpha1.BundleSource) (bool, string)) func(context.Context) (bool, string) {
	return func(ctx context.Context) (bool, string) {
		var s v1alpha1.BundleSource
		if err := r.Admin.Get(ctx, key, &s); err != nil {
			return false, err.Error()
		}
		return check(&s)
	}
}

// request asks for a reconcile of each deployment now, and returns by what it is known.
func (r *rig) request(t *testing.T, keys []client.ObjectKey) string {
	t.Helper()
	at := time.Now().Format(time.RFC3339Nano)
	for _, key := range keys {
		d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		patch := `{"metadata":{"annotations":{"` + meta.ReconcileRequestAnnotation + `":"` + at + `"}}}`
		if err := r.Admin.Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	return at
}

// handled waits until a request was handled, and the deployment is Ready.
func (r *rig) handled(t *testing.T, key client.ObjectKey, at string) {
	t.Helper()
	r.Until(t, key, "the request is handled", func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.LastHandledReconcileAt == at && isReady(d)
	})
}
