// SPDX-License-Identifier: Apache-2.0

package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/worker"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// full tells whether the release suite runs.
func full() bool { return os.Getenv("SATCHEL_FULL") != "" }

// TestWorkerMemoryAndRetirement: the resident memory of a worker does not grow with the number of its jobs, and it is replaced
// after 1,000 of them.
func TestWorkerMemoryAndRetirement(t *testing.T) {
	const retireAfter, most = 1000, 192 << 20
	if !full() {
		t.Skip("it runs 1,000 conversions: SATCHEL_FULL=1 does")
	}
	pool := unbounded(t)
	files := pack(t, os.DirFS(filepath.Join(bundles, "press")))
	first, resident := 0, []int64(nil)
	for i := range retireAfter + 1 {
		converted, err := jobs.Convert(t.Context(), pool, "tenant", jobs.Conversion{Files: files, Options: measuredOptions})
		if err != nil || converted.Content == "" {
			t.Fatalf("job %d: %v", i, err)
		}
		found := children()
		if len(found) != 1 && i < retireAfter-1 {
			t.Fatalf("job %d: %d processes", i, len(found))
		}
		switch {
		case i == 0:
			first = found[0].pid
		case i < retireAfter-1 && found[0].pid != first:
			t.Fatalf("replaced after %d jobs", i)
		case i == retireAfter && (len(found) != 1 || found[0].pid == first):
			t.Errorf("not replaced after %d jobs", retireAfter)
		}
		if i%250 == 1 || i == retireAfter-2 {
			resident = append(resident, found[0].resident>>20)
		}
	}
	t.Logf("resident MiB after 2, 252, 502, 752 and 999 jobs: %v", resident)
	if last := resident[len(resident)-1]; last > most>>20 {
		t.Errorf("%d MiB resident after 1,000 jobs", last)
	}
}

// BenchmarkStart starts a worker process with a first, small job, and also reports its CPU time.
func BenchmarkStart(b *testing.B) {
	files := pack(b, os.DirFS(filepath.Join(bundles, "kiosk")))
	used := time.Duration(0)
	for b.Loop() {
		pool, err := worker.New(worker.Options{Workers: 1, CPU: time.Second, Memory: 512 << 20, Output: 1 << 20, Wall: time.Minute})
		if err != nil {
			b.Fatal(err)
		}
		if _, err = jobs.Convert(b.Context(), pool, "tenant", jobs.Conversion{Files: files, Options: measuredOptions}); err != nil {
			b.Fatal(err)
		}
		for _, child := range children() {
			used += child.cpu
		}
		if err := pool.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(used.Milliseconds())/float64(b.N), "child-cpu-ms/op")
}

// TestManyNamespacesBesideAnAttacker: conversions of one bundle from 20 namespaces at once, one of which submits bombs. All other
// results are correct, no process and no temporary file is left.
func TestManyNamespacesBesideAnAttacker(t *testing.T) {
	const namespaces = 20
	conversions := 100
	if full() {
		conversions = 1000
	}
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	pool, err := worker.New(worker.Options{
		Workers: 2, Spare: true, CPU: 2 * time.Second, Memory: 256 << 20, Output: 16 << 20, Wall: time.Minute,
		NamespaceCPU: 10 * time.Second, NamespaceWindow: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	bundle := os.DirFS(filepath.Join(bundles, "kiosk"))
	want, err := convert.Convert(bundle, measuredOptions)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var attacker, victims sync.WaitGroup
	bomb := pack(t, bombs()["range over a number"].files)
	ended := map[string]int{}
	attacker.Go(func() {
		for ctx.Err() == nil {
			_, err := jobs.Convert(ctx, pool, "attacker", jobs.Conversion{Files: bomb, Options: convert.Options{Format: convert.Helm, InstallNamespace: "a"}})
			var limit *worker.LimitError
			var budget *worker.BudgetError
			switch {
			case errors.As(err, &limit):
				ended["limit"]++
			case errors.As(err, &budget):
				ended["budget"]++
				time.Sleep(10 * time.Millisecond) // a controller waits for longer
			case ctx.Err() == nil:
				t.Errorf("a bomb ended with %v", err)
			}
		}
	})
	took := make([][]time.Duration, namespaces-1)
	for n := range took {
		files := pack(t, bundle)
		victims.Go(func() {
			for range (conversions + namespaces - 2) / (namespaces - 1) {
				began := time.Now()
				converted, err := jobs.Convert(t.Context(), pool, "team-"+strconv.Itoa(n), jobs.Conversion{Files: files, Options: measuredOptions})
				took[n] = append(took[n], time.Since(began))
				if err != nil {
					t.Errorf("team-%d: %v", n, err)
					return
				}
				if got, err := converted.Result(); err != nil || !cmp.Equal(want, got) {
					t.Errorf("team-%d got another result: %v", n, err)
				}
			}
		})
	}
	victims.Wait()
	cancel()
	attacker.Wait()
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	t.Logf("%d conversions: median %s, p95 %s, longest %s; bombs ended by %v", len(all), all[len(all)/2], all[len(all)*95/100], all[len(all)-1], ended)
	nothingIsLeft(t, temporary)
}

// nothingIsLeft wants no child process, zombies included, and no temporary file.
func nothingIsLeft(t *testing.T, temporary string) {
	t.Helper()
	if left := children(); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	files, err := os.ReadDir(temporary)
	for _, file := range files {
		t.Errorf("the temporary file %s is left", file.Name())
	}
	if err != nil {
		t.Error(fmt.Errorf("looking for temporary files: %w", err))
	}
}
