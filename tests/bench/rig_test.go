// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/controller/deployment"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// ownUser is as whom the deployment controller authenticates.
const ownUser = "system:serviceaccount:" + installation.Namespace + ":" + deployment.FieldManager

// patience bounds every wait.
const patience = 15 * time.Minute

// atOnce is how many requests the bare loops have under way, as the controller has.
const atOnce = 16

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code := controlplane.RunMain(m)
	if process := shared.rig.controller; process != nil && process.Process != nil {
		_ = process.Process.Kill()
		_ = process.Wait()
	}
	_ = os.RemoveAll(shared.dir)
	os.Exit(code)
}

// rig is a control plane with a controller, the deployment controller unless a benchmark says otherwise, and an artifact server.
type rig struct {
	cp    *controlplane.ControlPlane
	admin client.Client
	// watcher is the same person, who may watch, too.
	watcher client.WithWatch
	*installation.Deployments
	controller *exec.Cmd
	user       string // as which the controller authenticates
	profiles   string // the address of the controller's profiles, if they are wanted
}

var shared struct {
	once sync.Once
	rig  rig
	dir  string
	err  error
}

func newRig(t testing.TB) *rig {
	t.Helper()
	cp := controlplane.Shared(t)
	cp.RequireControl(t)
	shared.once.Do(func() {
		if shared.err = start(cp); shared.err == nil {
			shared.rig.warm(t)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return &shared.rig
}

// warm waits until the controller has applied something: its caches fill for up to a second after its start, which is no part of
// what is measured.
func (r *rig) warm(t testing.TB) {
	t.Helper()
	namespace := r.namespace(t)
	files, _ := manyMaps(1, nil)
	r.publish(t, namespace, "v1", files)
	if err := r.deploy(t.Context(), namespace, "app"); err != nil {
		t.Fatal(err)
	}
	r.waitAll(t, namespace, 1, isReady)
	r.clear(t, namespace)
}

func start(cp *controlplane.ControlPlane) error {
	ctx := context.Background() // the controller runs as long as the test binary
	unlimited := rest.CopyConfig(cp.RESTConfig())
	unlimited.QPS, unlimited.Burst = -1, -1
	if err := installation.Install(ctx, unlimited); err != nil {
		return err
	}
	admin, err := installation.Client(unlimited)
	if err != nil {
		return err
	}
	watcher, err := client.NewWithWatch(unlimited, client.Options{Scheme: admin.Scheme()})
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "satchel-bench-*")
	if err != nil {
		return err
	}
	shared.dir = dir
	published, artifacts, err := installation.ServeArtifacts(ctx, unlimited, dir)
	if err != nil {
		return err
	}
	shared.rig = rig{cp: cp, admin: admin, watcher: watcher, Deployments: published, user: ownUser}
	return shared.rig.run(ctx, unlimited, dir, artifacts)
}

// run builds the controller and starts it as a process of its own, which the kernel
// kills when this one ends, with the limit of memory that config/manager has.
func (r *rig) run(ctx context.Context, admin *rest.Config, dir, artifacts string) error {
	program, kubeconfig := filepath.Join(dir, deployment.FieldManager), filepath.Join(dir, "kubeconfig")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/"+deployment.FieldManager)
	build.Dir = installation.Root()
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the controller: %w\n%s", err, output)
	}
	config, err := installation.AccountConfig(ctx, admin, installation.Namespace, deployment.FieldManager)
	if err != nil {
		return err
	}
	if err := writeKubeconfig(config, kubeconfig); err != nil {
		return err
	}
	if r.profiles, err = profilesAddress(); err != nil {
		return err
	}
	r.controller = exec.Command(program, append([]string{
		"--pprof-addr=" + cmp.Or(r.profiles, "0"),
		"--kubeconfig=" + kubeconfig, "--artifact-servers=" + artifacts, "--cache-path=" + filepath.Join(dir, "cache"),
		"--metrics-addr=0", "--health-addr=0", "--log-level=error",
	}, strings.Fields(os.Getenv("SATCHEL_BENCH_FLAGS"))...)...)
	r.controller.Env = append(os.Environ(), "GOMEMLIMIT=920MiB")
	r.controller.Stderr = os.Stderr
	r.controller.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return r.controller.Start()
}

// writeKubeconfig writes a kubeconfig for a user with a token.
func writeKubeconfig(config *rest.Config, name string) error {
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData, CertificateAuthority: config.CAFile}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	file.Contexts["x"], file.CurrentContext = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}, "x"
	return clientcmd.WriteToFile(*file, name)
}

// cpu is the CPU time of the controller and its worker processes so far, in seconds. The kernel counts in hundredths.
func (r *rig) cpu(t testing.TB) float64 {
	t.Helper()
	return cpuOf(t, r.controller.Process.Pid)
}

// cpuOfAll is the CPU time so far, in seconds, of this process and of those that it started: the API server, etcd, the controllers and
// their workers.
func cpuOfAll(t testing.TB) float64 {
	t.Helper()
	return cpuOf(t, os.Getpid())
}

// cpuOf is the CPU time so far, in seconds, of a process and of those that it started, whether they ended or not.
func cpuOf(t testing.TB, pid int) float64 {
	t.Helper()
	ticks := ticksOfTree(strconv.Itoa(pid))
	if ticks == 0 {
		t.Fatalf("the CPU time of process %d is not known", pid)
	}
	return float64(ticks) / 100
}

func ticksOfTree(pid string) int {
	ticks := ticksOf(pid, 4) // its own, and those of children that ended
	tasks, _ := filepath.Glob("/proc/" + pid + "/task/*/children")
	for _, task := range tasks {
		children, _ := os.ReadFile(task)
		for _, child := range strings.Fields(string(children)) {
			ticks += ticksOfTree(child)
		}
	}
	return ticks
}

// ticksOf sums so many of the counters utime, stime, cutime and cstime of a process; 0 when it is gone.
func ticksOf(pid string, counters int) (sum int) {
	stat, _ := os.ReadFile("/proc/" + pid + "/stat")
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	const utime = 11 // counted from the state, which follows the name
	if len(fields) < utime+counters {
		return 0
	}
	for _, field := range fields[utime : utime+counters] {
		n, _ := strconv.Atoi(field)
		sum += n
	}
	return sum
}

// peak returns the largest resident memory of the controller, in MiB, since the last call.
func (r *rig) peak(t testing.TB) float64 {
	t.Helper()
	proc := fmt.Sprintf("/proc/%d/", r.controller.Process.Pid)
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		t.Fatal(err)
	}
	_, peak, found := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.ParseFloat(strings.Fields(peak)[0], 64)
	if err != nil || !found {
		t.Fatalf("the controller's memory is not known: %v", err)
	}
	if err := os.WriteFile(proc+"clear_refs", []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}

func (r *rig) namespace(t testing.TB) string {
	t.Helper()
	namespace := controlplane.NewNamespace(t, r.cp)
	if err := installation.Admin(t.Context(), r.admin, namespace, "installer"); err != nil {
		t.Fatal(err)
	}
	return namespace
}

// deploy creates a deployment of the source of the same name.
func (r *rig) deploy(ctx context.Context, namespace, name string) error {
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	d.Spec.ServiceAccountName = "installer"
	d.Spec.SourceRef = &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: name}
	return r.admin.Create(ctx, d)
}

// waitAll polls until each of the deployments of a namespace satisfies a condition.
func (r *rig) waitAll(t testing.TB, namespace string, count int, holds func(*v1alpha1.BundleDeployment) bool) {
	t.Helper()
	r.follow(t, &v1alpha1.BundleDeploymentList{}, namespace, count, func(o client.Object) bool {
		d, ok := o.(*v1alpha1.BundleDeployment)
		return ok && holds(d)
	})
}

func isReady(d *v1alpha1.BundleDeployment) bool { return conditions.IsTrue(d, meta.ReadyCondition) }

// clear removes the deployments of a namespace, so that nothing of them is under
// way in the next measurement. It deletes them one by one, many at once: the API server ends a request to delete a whole
// collection after a minute, when it has deleted a part of thousands of objects.
func (r *rig) clear(t testing.TB, namespace string) {
	t.Helper()
	var all metav1.PartialObjectMetadataList
	all.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.BundleDeploymentKind + "List"))
	if err := r.admin.List(t.Context(), &all, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(all.Items))
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	each(t, names, func(ctx context.Context, name string) error {
		return r.admin.Delete(ctx, &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	})
	err := wait.PollUntilContextTimeout(t.Context(), 250*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		var list v1alpha1.BundleDeploymentList
		err := r.admin.List(ctx, &list, client.InNamespace(namespace), client.Limit(1))
		return err == nil && len(list.Items) == 0, err
	})
	if err != nil {
		t.Fatalf("waiting until the deployments of %s are gone: %v", namespace, err)
	}
}

// bare applies objects in parallel and returns how long that took.
func (r *rig) bare(t testing.TB, objects []*unstructured.Unstructured) {
	t.Helper()
	errs := parallel.Each(t.Context(), atOnce, objects, func(ctx context.Context, o *unstructured.Unstructured) error {
		return r.admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("bare"))
	})
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// requests counts what the controller asked of the API server since a mark.
type requests struct {
	byVerb map[string]int
	// objects is how many were about single objects of a bundle.
	objects int
}

// all is how many requests there were.
func (r requests) all() (sum int) {
	for _, n := range r.byVerb {
		sum += n
	}
	return sum
}

func (r *rig) requests(t testing.TB, since controlplane.AuditMark) requests {
	t.Helper()
	events, err := r.cp.Audit(since)
	if err != nil {
		t.Fatal(err)
	}
	counted := requests{byVerb: map[string]int{}}
	for _, e := range events {
		if e.User != r.user || e.Resource == "leases" || e.Verb == "watch" {
			continue
		}
		who := "own"
		if e.ImpersonatedUser != "" {
			who = "as the account"
			if e.Name != "" && !strings.HasPrefix(e.Resource, "selfsubject") {
				counted.objects++
			}
		}
		counted.byVerb[fmt.Sprint(who, ": ", e.Verb, " ", e.Resource, "/", e.Subresource, " ", e.Code)]++
	}
	return counted
}

func (r *rig) mark(t testing.TB) controlplane.AuditMark {
	t.Helper()
	mark, err := r.cp.AuditMark()
	if err != nil {
		t.Fatal(err)
	}
	return mark
}
