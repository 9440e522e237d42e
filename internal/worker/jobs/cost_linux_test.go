// SPDX-License-Identifier: Apache-2.0

package jobs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/satchel-dev/satchel/internal/apply/plan/digest"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/overlay"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
	"github.com/satchel-dev/satchel/internal/fetch/packed"
	"github.com/satchel-dev/satchel/internal/worker"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// measured are the bundles for cost measurements: the small ones of package convert, one of each format with many objects,
// and the largest of the corpus if that is beside the repository.
func measured(tb testing.TB) map[string]fs.FS {
	tb.Helper()
	all := map[string]fs.FS{
		"plain-1000":    fstest.MapFS{"manifests/all.yaml": {Data: []byte(deployments(1000))}},
		"kustomize-200": fstest.MapFS{"kustomization.yaml": {Data: []byte("namePrefix: a-\nresources: [all.yaml]\n")}, "all.yaml": {Data: []byte(deployments(200))}},
		"helm-1000": fstest.MapFS{
			"Chart.yaml":         {Data: []byte("apiVersion: v2\nname: app\nversion: 1.0.0\n")},
			"templates/all.yaml": {Data: []byte("{{ range until 1000 }}" + strings.ReplaceAll(deployment, "%d", "{{ . }}") + "{{ end }}")},
		},
	}
	for name, folder := range map[string]string{"plain-small": "kiosk", "helm-small": "press", "kustomize-small": "shop", "registryv1-small": "gadget"} {
		all[name] = os.DirFS(filepath.Join(bundles, folder))
	}
	largest, size := "", int64(0)
	found, _ := filepath.Glob("../../../../shared/corpus/registryv1/bundles/*/*")
	for _, folder := range found {
		files, _ := filepath.Glob(filepath.Join(folder, "manifests", "*"))
		total := int64(0)
		for _, file := range files {
			if info, err := os.Stat(file); err == nil {
				total += info.Size()
			}
		}
		if total > size {
			largest, size = folder, total
		}
	}
	if largest != "" {
		all["registryv1-large"] = os.DirFS(largest)
	}
	return all
}

const deployment = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: "web-%d", labels: {app.kubernetes.io/name: web, app.kubernetes.io/part-of: shop}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: registry.example.org/shop/web:1.2.3
        args: ["--listen=:8080", "--log=info"]
        ports: [{name: http, containerPort: 8080}]
        resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}
        env: [{name: MODE, value: production}, {name: REGION, value: eu}]
`

func deployments(n int) string {
	var all strings.Builder
	for i := range n {
		all.WriteString(strings.ReplaceAll(deployment, "%d", strconv.Itoa(i)))
	}
	return all.String()
}

// measuredOptions fit all of them.
var measuredOptions = convert.Options{
	InstallNamespace: "tenant", RegistryV1: registryv1.Options{CertificateProvider: registryv1.CertManager},
	Overlay: overlay.Options{Processors: []overlay.Processor{{Metadata: &overlay.Metadata{Labels: map[string]string{"team": "a"}}}}},
}

// cost is the CPU time of one conversion: in this process, and in a warm worker with and without decoding the objects here.
type cost struct{ inProcess, worker, undecoded time.Duration }

func (c cost) String() string {
	return fmt.Sprintf("in process %s; worker %s (%.2f), result not decoded %s (%.2f)", c.inProcess.Round(time.Microsecond),
		c.worker.Round(time.Microsecond), c.ratio(), c.undecoded.Round(time.Microsecond), float64(c.undecoded)/float64(c.inProcess))
}

func (c cost) ratio() float64 { return float64(c.worker) / float64(c.inProcess) }

// measureCost converts a bundle so often that it takes about a second of CPU time each way. In process, the digest and the
// number of values are computed as well: the controller needs both.
func measureCost(tb testing.TB, pool *worker.Pool, bundle fs.FS) cost {
	tb.Helper()
	files := pack(tb, bundle)
	inProcess := func() {
		unpacked, err := packed.New(files.File, files.Index)
		if err != nil {
			tb.Fatal(err)
		}
		result, err := convert.Convert(unpacked, measuredOptions)
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := digest.Content(result.Objects, "tenant"); err != nil {
			tb.Fatal(err)
		}
		for _, object := range result.Objects {
			jobs.Values(object.Object)
		}
	}
	inWorker := func(decode bool) func() {
		return func() {
			converted, err := jobs.Convert(tb.Context(), pool, "tenant", jobs.Conversion{Files: files, Options: measuredOptions})
			if err == nil && decode {
				_, err = converted.Result()
			}
			if err != nil {
				tb.Fatal(err)
			}
		}
	}
	return cost{inProcess: perRun(inProcess), worker: perRun(inWorker(true)), undecoded: perRun(inWorker(false))}
}

// perRun is the CPU time that a function takes, in this process and its children.
func perRun(run func()) time.Duration {
	const enough = time.Second
	run()
	run()
	for runs := 1; ; runs *= 2 { // reading /proc takes CPU time as well, so that it is not read after each run
		began := usedCPU()
		for range runs {
			run()
		}
		if used := usedCPU() - began; used >= enough {
			return used / time.Duration(runs)
		}
	}
}

// usedCPU is the CPU time of this process and of its children, living and ended.
func usedCPU() time.Duration {
	total := time.Duration(0)
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if err := syscall.Getrusage(who, &used); err != nil {
			return 0
		}
		total += time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	for _, child := range children() {
		total += child.cpu
	}
	return total
}

// childProcess is a process that this one started.
type childProcess struct {
	pid      int
	state    string
	cpu      time.Duration
	resident int64
}

// children reads the living and the unreaped children from /proc.
func children() []childProcess {
	const tick = 10 * time.Millisecond
	const firstField = 3 // the fields of /proc/PID/stat count from 1, and those before the state are cut off
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	own := strconv.Itoa(os.Getpid())
	var found []childProcess
	for _, name := range stats {
		content, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(content), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 22 || fields[4-firstField] != own {
			continue
		}
		user, _ := strconv.ParseInt(fields[14-firstField], 10, 64)
		system, _ := strconv.ParseInt(fields[15-firstField], 10, 64)
		pages, _ := strconv.ParseInt(fields[24-firstField], 10, 64)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		found = append(found, childProcess{pid, fields[0], time.Duration(user+system) * tick, pages * int64(os.Getpagesize())})
	}
	return found
}

// unbounded is a pool without a CPU budget for namespaces.
func unbounded(tb testing.TB) *worker.Pool {
	return newPool(tb, func(o *worker.Options) { o.NamespaceCPU, o.Spare = 0, false })
}

// mostCost is the most CPU time that a conversion in a worker may take, beside that in process. For bundles that take less
// than a millisecond, the overhead of each job (system calls, encoding) may be more.
const (
	mostCost = 1.6
	perJob   = 500 * time.Microsecond
)

func (c cost) tooMuch() bool { return c.ratio() > mostCost && c.worker-c.inProcess > perJob }

// TestWorkerCPU: a conversion in a worker takes at most 1.6 times the CPU time of one in process. A measurement beside other
// work varies, so that the lowest ratio of three counts.
func TestWorkerCPU(t *testing.T) {
	if os.Getenv("SATCHEL_FULL") == "" {
		t.Skip("it takes minutes: SATCHEL_FULL=1 measures")
	}
	pool := unbounded(t)
	for name, bundle := range measured(t) {
		t.Run(name, func(t *testing.T) {
			lowest := cost{inProcess: 1, worker: 1 << 40}
			for range 3 {
				if c := measureCost(t, pool, bundle); c.ratio() < lowest.ratio() {
					lowest = c
				}
				if !lowest.tooMuch() {
					break
				}
			}
			t.Log(lowest)
			if lowest.tooMuch() {
				t.Errorf("the ratio is %.2f, want at most %.1f, or %s more", lowest.ratio(), mostCost, perJob)
			}
		})
	}
}

// BenchmarkWorkerCPU prints the ratio of the CPU time of a conversion in a worker to that in process: -benchtime=1x.
func BenchmarkWorkerCPU(b *testing.B) {
	pool := unbounded(b)
	for name, bundle := range measured(b) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				c := measureCost(b, pool, bundle)
				b.ReportMetric(float64(c.inProcess.Microseconds()), "in-process-µs")
				b.ReportMetric(float64(c.worker.Microseconds()), "worker-µs")
				b.ReportMetric(c.ratio(), "ratio")
				b.ReportMetric(float64(c.undecoded)/float64(c.inProcess), "undecoded-ratio")
			}
		})
	}
}
