// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	gogit "github.com/go-git/go-git/v5"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// manyFiles has one commit of files that differ, a thousand in a folder.
func manyFiles(r *repository, count int) {
	r.t.Helper()
	var stream bytes.Buffer
	stream.WriteString("commit refs/heads/main\ncommitter a <a@example.org> 1767225600 +0000\ndata 1\nx\n")
	for i := range count {
		content := fmt.Sprintf("kind: ConfigMap\nmetadata:\n  name: file-%d\ndata:\n  value: %q\n", i, strings.Repeat(strconv.Itoa(i), 20))
		fmt.Fprintf(&stream, "M 100644 inline d%03d/f%06d.yaml\ndata %d\n%s\n", i/1000, i, len(content), content)
	}
	r.git(stream.Bytes(), "fast-import", "--quiet")
}

// TestM16FiftyThousandFiles are refused by default, and none of them is written.
func TestM16FiftyThousandFiles(t *testing.T) {
	r := newRepository(t)
	manyFiles(r, 50_000)
	r.git(nil, "config", "pack.window", "0") // or the server looks for differences, which takes longer than all else
	_, files, err := pull(t, Options{URL: r.url})
	if fetch.ReasonOf(err) != fetch.LimitExceeded || len(files) > 0 {
		t.Errorf("%d files, %v", len(files), err)
	}
}

// BenchmarkFiftyThousandFiles fetches a repository of 50,000 files with raised limits, beside git and go-git, which clone it from
// the same server, and a copy of the same files. It has one commit, so that all transfer the same. All but git, a process of its own, say
// by how much the resident memory of this process rose at its peak.
func BenchmarkFiftyThousandFiles(b *testing.B) {
	r := newRepository(b)
	manyFiles(r, 50_000)
	limits := fetch.DefaultLimits()
	limits.Entries = 60_000
	f := fetcher(b, Options{URL: r.url, Limits: limits})
	resolved, err := f.Resolve(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	work, last := b.TempDir(), ""
	folder := func() string {
		dir, err := os.MkdirTemp(work, "")
		if err != nil {
			b.Fatal(err)
		}
		return dir
	}
	b.Run("fetch", func(b *testing.B) {
		measure(b, func() {
			last = folder()
			tree, err := fetch.NewTree(last, limits)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := f.Fetch(context.Background(), resolved, tree); err != nil {
				b.Fatal(err)
			}
			if err := tree.Close(); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("git", func(b *testing.B) {
		peak := int64(0)
		for b.Loop() {
			//nolint:gosec // a program and a server of the test
			cmd := exec.Command("git", "clone", "--quiet", "--branch=main", r.url, filepath.Join(folder(), "clone"))
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
			peak = max(peak, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
		}
		b.ReportMetric(float64(peak)/1024, "MiB-process")
	})
	b.Run("go-git", func(b *testing.B) {
		measure(b, func() {
			options := &gogit.CloneOptions{URL: r.url, ReferenceName: "refs/heads/main", SingleBranch: true}
			if _, err := gogit.PlainClone(filepath.Join(folder(), "clone"), false, options); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("copy", func(b *testing.B) {
		measure(b, func() {
			if err := os.CopyFS(filepath.Join(folder(), "copy"), os.DirFS(last)); err != nil {
				b.Fatal(err)
			}
		})
	})
}

// measure runs something and reports the peak of resident memory over what it was before.
func measure(b *testing.B, run func()) {
	b.Helper()
	peak, began := 0, cpu(b)
	for b.Loop() {
		b.StopTimer()
		debug.FreeOSMemory()
		before := resident(b, "VmRSS:")
		// The kernel resets the peak.
		if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600); err != nil {
			b.Skipf("the peak of memory cannot be measured here: %v", err)
		}
		b.StartTimer()
		run()
		peak = max(peak, resident(b, "VmHWM:")-before)
	}
	b.ReportMetric(float64(peak)/1024, "MiB-peak")
	b.ReportMetric((cpu(b)-began).Seconds()/float64(b.N), "cpu-s/op")
}

// cpu is the time that this process, without its children, has computed.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// resident reads a figure of this process, in KiB.
func resident(b *testing.B, name string) int {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skipf("memory cannot be measured here: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == name {
			value, err := strconv.Atoi(fields[1])
			if err != nil {
				b.Fatal(err)
			}
			return value
		}
	}
	b.Fatalf("%s is not there", name)
	return 0
}
