// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/e2erig"
	"github.com/satchel-dev/satchel/tests/upstream"
)

// F9: what is damaged on disk while the controller is stopped is noticed when it starts, told,
// and fetched again.
func TestF9DamagedWhileStopped(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.CP)
	server := newAsked(t, noiseArchive(9))
	damages := map[string]func(file string) error{
		"truncated": func(file string) error { return os.Truncate(file, 100) },
		"emptied":   func(file string) error { return os.Truncate(file, 0) },
		"deleted":   os.Remove,
		"flipped":   flip,
		"linked": func(file string) error {
			if err := os.Rename(file, file+".moved"); err != nil {
				return err
			}
			return os.Symlink(filepath.Base(file)+".moved", file)
		},
	}
	for name := range damages {
		r.archive(t, namespace, name, server.URL+"/"+name+".tar", time.Hour)
	}
	r.allReady(t, namespace)
	r.Kill(sourceController)
	before := server.downloads()
	for name, damage := range damages {
		var s v1alpha1.BundleSource
		if err := r.Admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &s); err != nil {
			t.Fatal(err)
		}
		if err := damage(filepath.Join(r.File("data"), "artifacts", s.Status.Artifact.Path)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Start(sourceController); err != nil {
		t.Fatal(err)
	}
	for name := range damages {
		key := client.ObjectKey{Namespace: namespace, Name: name}
		r.Eventually(t, t.Context(), name+" was fetched again", func(context.Context) (bool, string) {
			return server.downloads() >= before+len(damages), fmt.Sprint(server.downloads()-before, " downloads")
		})
		r.soundSource(t, key)
		r.told(t, namespace, name, v1alpha1.ReasonArtifactLost)
	}
	if got := server.downloads() - before; got != len(damages) {
		t.Errorf("%d downloads for %d damaged artifacts", got, len(damages))
	}
}

// flip changes one bit in the middle of a file.
func flip(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	content[len(content)/2] ^= 1
	return os.WriteFile(file, content, 0o600)
}

// downloads is how often the body was asked for.
func (a *asked) downloads() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gets
}

// told waits until an event of a reason was recorded about a source.
func (r *rig) told(t *testing.T, namespace, name, reason string) {
	t.Helper()
	r.Eventually(t, t.Context(), "an event about "+name, func(ctx context.Context) (bool, string) {
		var list eventsv1.EventList
		if err := r.Admin.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return false, err.Error()
		}
		all := ""
		for _, event := range list.Items {
			if event.Regarding.Name != name {
				continue
			}
			if all += event.Reason + ": " + event.Note + "\n"; event.Reason == reason {
				return true, ""
			}
		}
		return false, all
	})
}

// F11: the storage is emptied while the controller is down, and the upstream is down when it
// starts. What is lost is no longer advertised after one reconcile; deployments keep what they
// run, and say why there is nothing newer.
func TestF11StorageEmptiedWhileDown(t *testing.T) {
	r := newRig(t)
	namespace := r.Namespace(t)
	content, err := upstream.Tar(configMaps("kept", 3))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		http.ServeContent(w, request, "b.tar", time.Unix(1, 0), bytes.NewReader(content))
	}))
	t.Cleanup(server.Close)
	key := r.Deploy(t, namespace, "app", "", func(d *v1alpha1.BundleDeployment) {
		d.Spec.Interval = v1alpha1.Duration{Duration: time.Second}
		d.Spec.Source.Interval = v1alpha1.Duration{Duration: time.Hour}
		d.Spec.Source.Sources = []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: server.URL + "/b.tar"}}}
	})
	installed := r.Ready(t, key)
	r.Kill(sourceController)
	if err := os.RemoveAll(r.File("data")); err != nil {
		t.Fatal(err)
	}
	server.Close()
	began := time.Now()
	if err := r.Start(sourceController); err != nil {
		t.Fatal(err)
	}
	lost := r.sourceUntil(t, key, "the lost artifact is not advertised", func(s *v1alpha1.BundleSource) bool { return s.Status.Artifact == nil })
	took := time.Since(began)
	if conditions.GetReason(lost, v1alpha1.ArtifactInStorageCondition) != v1alpha1.ReasonArtifactLost || conditions.IsTrue(lost, meta.ReadyCondition) {
		t.Errorf("the conditions are wrong: %v", lost.Status.Conditions)
	}
	d := r.Until(t, key, "the deployment knows", func(d *v1alpha1.BundleDeployment) bool {
		return strings.Contains(e2erig.Describe(d), "SourceReady=False")
	})
	if kept := r.named(t, namespace, "kept"); len(kept) != 3 || d.Status.Applied.Revision != installed.Status.Applied.Revision {
		t.Errorf("of three objects %v are left; the deployment is\n%s", kept, e2erig.Describe(d))
	}
	t.Logf("not advertised %s after the start; the deployment says\n%s", took.Round(time.Millisecond), e2erig.Describe(d))
	if took > 60*time.Second {
		t.Errorf("that took %s, the target is 10 s", took)
	}
}
