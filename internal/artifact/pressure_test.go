// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/internal/artifact/storage"
)

// TestF13CollectUnderPressure publishes one revision after the other, all with one modification time, and collects each
// time within a millisecond, on a disk that is slower than that: what is advertised stays, nothing piles up, and what one
// collection did not get to a later one removes.
func TestF13CollectUnderPressure(t *testing.T) {
	revisions := 60
	if full() {
		revisions = 500
	}
	dir, now := t.TempDir(), &clock{now: time.Now()}
	store := openStore(t, dir, func(o *storage.Options) { o.Now = now.Now })
	goroutines := runtime.NumGoroutine()
	sameTime := time.Now().Add(-time.Hour).Truncate(time.Second)
	late := 0
	var previous, latest meta.Artifact
	for i := range revisions {
		previous, latest = latest, put(t, store, files(map[string]string{"a": fmt.Sprint(i)}))
		if err := os.Chtimes(filepath.Join(dir, latest.Path), sameTime, sameTime); err != nil {
			t.Fatal(err)
		}
		now.add(time.Minute)
		keep := func(digest string) bool {
			time.Sleep(200 * time.Microsecond) // the disk is slow
			return digest == latest.Digest
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		_, err := store.Collect(ctx, owner, keep, 2, time.Second)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if err != nil {
			late++
		}
		if answer := get(store, latest); answer.Code != http.StatusOK {
			t.Fatalf("revision %d is advertised and answered with %d", i, answer.Code)
		}
	}
	if late == 0 {
		t.Error("no collection ran out of time: the test tests nothing")
	}
	if _, err := store.Collect(t.Context(), owner, func(digest string) bool { return digest == latest.Digest }, 2, time.Second); err != nil {
		t.Fatal(err)
	}
	if left := archives(t, dir); len(left) > 3 || get(store, latest).Code != http.StatusOK || get(store, previous).Code != http.StatusOK {
		t.Errorf("%d are left, or the two newest are not among them", len(left))
	}
	if stats := store.Stats(); stats.Artifacts > 3 {
		t.Errorf("%d artifacts are counted", stats.Artifacts)
	}
	if more := runtime.NumGoroutine() - goroutines; more > 5 {
		t.Errorf("%d goroutines more than at the start", more)
	}
	t.Logf("%d revisions, %d collections ran out of time", revisions, late)
}
