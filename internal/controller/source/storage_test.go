// SPDX-License-Identifier: Apache-2.0

//go:build linux

package source_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// F12: a full volume has a clear condition, stored artifacts are still served, other
// volumes are not affected, and everything recovers once there is room.
func TestF12AFullVolume(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	r := newRig(t)
	namespace, other := controlplane.NewNamespace(t, r.cp), controlplane.NewNamespace(t, r.cp)
	volume := filepath.Join(r.storage, "bundlesource", namespace)
	mountSmall(t, volume)
	const sources = 6
	var keys []client.ObjectKey
	for i := range sources {
		name := fmt.Sprintf("full-%d", i)
		if _, err := r.registry.Push(t.Context(), name+":v1", incompressible(byte(50+i), 600_000)); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, r.create(t, namespace, name, image(r.registry.Host()+"/"+name+":v1"), every(time.Second)))
	}
	download(t, r.ready(t, r.create(t, other, "neighbour", image(r.registry.Host()+"/full-0:v1"), nil)).Status.Artifact)
	stored, refused := r.settled(t, keys)
	if len(stored) < 2 || len(refused) < 2 {
		t.Fatalf("%d were stored and %d refused", len(stored), len(refused))
	}
	for _, s := range stored {
		download(t, s.Status.Artifact)
	}
	for _, s := range refused {
		message := conditions.GetMessage(s, v1alpha1.StorageOperationFailedCondition)
		if !strings.Contains(message, "free space") || strings.Contains(message, r.storage) || conditions.IsTrue(s, meta.StalledCondition) {
			t.Errorf("the conditions are wrong:\n%s", describe(s))
		}
	}
	for _, s := range stored {
		if err := r.admin.Delete(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	for _, s := range refused[:2] {
		download(t, r.ready(t, client.ObjectKeyFromObject(s)).Status.Artifact)
	}
	t.Logf("%d of %d were stored; with room again two others were, %v later", len(stored), sources, time.Since(began).Round(time.Millisecond))
	r.withoutTemporary(t, volume)
}

// mountSmall mounts a file system of 2 MiB.
func mountSmall(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// settled waits until each source was stored, or refused by the volume.
func (r *rig) settled(t *testing.T, keys []client.ObjectKey) (stored, refused []*v1alpha1.BundleSource) {
	t.Helper()
	for _, key := range keys {
		s := r.until(t, key, "stored or refused", func(s *v1alpha1.BundleSource) bool {
			return conditions.IsTrue(s, meta.ReadyCondition) || conditions.GetReason(s, meta.ReadyCondition) == v1alpha1.ReasonStorageFailed
		})
		if conditions.IsTrue(s, meta.ReadyCondition) {
			stored = append(stored, s)
		} else {
			refused = append(refused, s)
		}
	}
	return stored, refused
}

// withoutTemporary waits until a folder has no temporary files.
func (r *rig) withoutTemporary(t *testing.T, dir string) {
	t.Helper()
	var found []string
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		found = nil
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && strings.HasPrefix(entry.Name(), ".tmp-") {
				found = append(found, path)
			}
			return nil // what goes while we look is fine
		})
		return len(found) == 0, err
	})
	if err != nil {
		t.Errorf("left behind: %v", found)
	}
}
