// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// sourceCrash is a point at which the source controller is killed.
type sourceCrash struct {
	write  int32 // at which of its status writes; 0 for none
	before bool  // before the write is committed
	body   int   // after that many percent of the download; 0 for none
	slow   bool  // the download lasts until its first status write
	seed   byte
}

// F1: the source controller is killed at each write of one reconcile, before and after
// it is committed, and while it downloads. After a restart the source is ready, what it
// advertises can be downloaded with the right bytes, nothing unfinished is left in storage, and
// the upstream was asked at most once more than without the kill.
func TestF1KilledSourceReconcile(t *testing.T) {
	r := newRig(t)
	seeds := byte(1)
	if full() {
		seeds = 3
	}
	for name, point := range map[string]sourceCrash{
		"before the only write":                {write: 1, before: true},
		"after the only write":                 {write: 1},
		"at 10 percent":                        {body: 10},
		"at 50 percent":                        {body: 50},
		"at 99 percent":                        {body: 99},
		"slow download, before Reconciling":    {write: 1, before: true, slow: true},
		"slow download, after Reconciling":     {write: 1, slow: true},
		"slow download, before the last write": {write: 2, before: true, slow: true},
		"slow download, after the last write":  {write: 2, slow: true},
	} {
		for point.seed = 1; point.seed <= seeds; point.seed++ {
			t.Run(fmt.Sprintf("%s, seed %d", name, point.seed), func(t *testing.T) { r.crashSource(t, point) })
		}
	}
}

func (r *rig) crashSource(t *testing.T, point sourceCrash) {
	namespace := controlplane.NewNamespace(t, r.CP)
	killed := make(chan struct{})
	die := sync.OnceFunc(func() {
		r.Kill(sourceController)
		close(killed)
	})
	var writes, downloads atomic.Int32
	announced := make(chan struct{})
	hit := func(request *http.Request) {
		if request.Method != http.MethodPatch || !strings.Contains(request.URL.Path, "/namespaces/"+namespace+"/bundlesources/") {
			return
		}
		write := writes.Add(1)
		if write == point.write {
			die()
		}
		if write == 1 {
			close(announced)
		}
	}
	t.Cleanup(func() {
		r.proxy.onRequest(nil)
		r.proxy.onAnswer(nil)
	})
	if point.before {
		r.proxy.onRequest(hit)
	} else {
		r.proxy.onAnswer(func(request *http.Request, _ int) { hit(request) })
	}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body := noiseArchive(point.seed)
		if request.Method == http.MethodGet && downloads.Add(1) == 1 && point.body > 0 {
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			_, _ = w.Write(body[:len(body)*point.body/100])
			_ = http.NewResponseController(w).Flush()
			die()
			return
		}
		if point.slow {
			_, _ = w.Write(body[:len(body)/2])
			_ = http.NewResponseController(w).Flush()
			body = body[len(body)/2:]
			select {
			case <-announced: // Reconciling is written only when a download takes long
			case <-request.Context().Done():
			}
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(upstream.Close)
	source := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "crash"}}
	source.Spec.Sources = []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: upstream.URL + "/b.tar"}}}
	if err := r.Admin.Create(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	select {
	case <-killed:
	case <-time.After(patience):
		t.Fatalf("the controller was not killed after %d writes; its log ends in:\n%s", writes.Load(), r.Log(sourceController))
	}
	r.proxy.onRequest(nil)
	r.proxy.onAnswer(nil)
	if err := r.Start(sourceController); err != nil {
		t.Fatal(err)
	}
	r.soundSource(t, client.ObjectKeyFromObject(source))
	if n := downloads.Load(); n > 2 {
		t.Errorf("the upstream was asked for the archive %d times, want at most one more than once", n)
	}
	t.Logf("%d status writes, %d downloads", writes.Load(), downloads.Load())
}

// soundSource waits until a source is ready and its artifact can be had (I1, I5), and
// nothing unfinished lies in storage (I6).
func (r *rig) soundSource(t *testing.T, key client.ObjectKey) {
	t.Helper()
	r.Eventually(t, t.Context(), "the source is ready and sound", func(ctx context.Context) (bool, string) {
		var s v1alpha1.BundleSource
		if err := r.Admin.Get(ctx, key, &s); err != nil {
			return false, err.Error()
		}
		if s.Status.Artifact == nil || !conditions.IsTrue(&s, meta.ReadyCondition) || s.Status.ObservedGeneration != s.Generation {
			return false, fmt.Sprint(s.Status.Conditions)
		}
		err := errors.Join(sound(ctx, s.Status.Artifact), r.unfinished())
		return err == nil, fmt.Sprint(err)
	})
}

// sourceUntil waits for a state of a source, and returns it.
func (r *rig) sourceUntil(t *testing.T, key client.ObjectKey, what string, holds func(*v1alpha1.BundleSource) bool) *v1alpha1.BundleSource {
	t.Helper()
	var s v1alpha1.BundleSource
	r.Eventually(t, t.Context(), what, func(ctx context.Context) (bool, string) {
		s = v1alpha1.BundleSource{}
		if err := r.Admin.Get(ctx, key, &s); err != nil {
			return false, err.Error()
		}
		return s.Status.ObservedGeneration == s.Generation && holds(&s), fmt.Sprint(s.Status.Artifact, s.Status.Conditions)
	})
	return &s
}

// sound says why an artifact cannot be had as it is advertised.
func sound(ctx context.Context, a *meta.Artifact) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return err
	}
	if got := fmt.Sprintf("sha256:%x", sha256.Sum256(body)); got != a.Digest {
		return fmt.Errorf("%s: digest %s, advertised is %s", answer.Status, got, a.Digest)
	}
	return nil
}

// unfinished says what is left in storage that is not finished.
func (r *rig) unfinished() error {
	var found []error
	err := filepath.WalkDir(r.File("data"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && (strings.HasPrefix(entry.Name(), ".tmp-") || strings.HasPrefix(entry.Name(), "fetch-")) {
			found = append(found, errors.New(path+" is left"))
		}
		return nil // what goes while we look is fine
	})
	return errors.Join(append(found, err)...)
}

// tinyArchive is a tar of one small file.
func tinyArchive() []byte { return tarOf([]byte("one")) }

// noiseArchive is a tar of 1 MiB that is the same each time for a seed.
func noiseArchive(seed byte) []byte {
	data := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(data)
	return tarOf(data)
}

func tarOf(data []byte) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	_ = w.WriteHeader(&tar.Header{Name: "noise", Mode: 0o644, Size: int64(len(data))})
	_, _ = w.Write(data)
	_ = w.Close()
	return out.Bytes()
}
