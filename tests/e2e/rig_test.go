// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/worker/child"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
	"github.com/satchel-dev/satchel/tests/upstream"
)

func TestMain(m *testing.M) {
	child.Main(jobs.Handlers())
	if point := os.Getenv(killVariable); point != "" {
		os.Exit(runKilled(point))
	}
	var err error
	if uploadAddr, err = controlplane.FreeAddress(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := controlplane.RunMain(m, controlplane.Options{EtcdProxy: throughLine, KwokConfig: forwardUploads(uploadAddr)})
	shared.rig.close()
	os.Exit(code)
}

// uploadAddr is where the source controller takes uploads in.
var uploadAddr string

// forwardUploads lets the port for uploads of every fake Pod lead there.
func forwardUploads(addr string) string {
	_, port, _ := strings.Cut(addr, ":")
	return `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterPortForward
metadata: {name: uploads}
spec: {forwards: [{ports: [9091], target: {address: 127.0.0.1, port: ` + port + `}}]}
`
}

// etcdLine is between the API server and etcd.
var etcdLine *line

func throughLine(etcd string) (string, error) {
	var err error
	if etcdLine, err = newLine(etcd, nil); err != nil {
		return "", err
	}
	return etcdLine.addr(), nil
}

// patience bounds waiting for a deployment; it is many times what one needs.
const patience = 2 * time.Minute

const (
	sourceController     = "bundle-source-controller"
	deploymentController = "bundle-deployment-controller"
)

// rig is the whole of Satchel on a control plane.
type rig struct {
	cp       *controlplane.ControlPlane
	admin    client.Client
	registry *upstream.Registry
	proxy    *proxy
	dir      string
	uploads  string // address of the source controller's

	mu        sync.Mutex
	processes map[string]*process
	arguments map[string][]string
}

// process is a controller of the rig. Like a kubelet, the rig starts one again that ended by itself.
type process struct {
	*exec.Cmd
	ended chan struct{}
}

var shared struct {
	once sync.Once
	rig  rig
	err  error
}

func newRig(t *testing.T) *rig {
	t.Helper()
	cp := controlplane.Shared(t)
	shared.once.Do(func() { shared.err = shared.rig.start(cp) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return &shared.rig
}

func (r *rig) start(cp *controlplane.ControlPlane) (err error) {
	ctx := context.Background() // the processes run as long as the test binary
	r.cp, r.processes, r.arguments = cp, map[string]*process{}, map[string][]string{}
	if err := installation.Install(ctx, cp.RESTConfig()); err != nil {
		return err
	}
	if r.admin, err = installation.Client(cp.RESTConfig()); err != nil {
		return err
	}
	if r.dir, err = os.MkdirTemp("", "satchel-e2e-*"); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", r.dir+"/", "./cmd/...")
	build.Dir = installation.Root()
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the controllers: %w\n%s", err, output)
	}
	r.registry = upstream.NewRegistry(ctx)
	if r.proxy, err = newProxy(cp.RESTConfig()); err != nil {
		return err
	}
	return r.startControllers(ctx)
}

func (r *rig) startControllers(ctx context.Context) error {
	storage, err := controlplane.FreeAddress()
	if err != nil {
		return err
	}
	r.uploads = uploadAddr
	common := []string{"--metrics-addr=0", "--health-addr=0"}
	r.arguments[sourceController] = append([]string{
		"--storage-path=" + filepath.Join(r.dir, "data"), "--storage-addr=" + storage, "--storage-adv-addr=" + storage, "--upload-addr=" + r.uploads,
		"--egress-allow=127.0.0.0/8", "--insecure-hosts=127.0.0.1", "--artifact-retention-ttl=1s",
	}, common...)
	r.arguments[deploymentController] = append([]string{
		"--artifact-servers=http://" + storage, "--cache-path=" + filepath.Join(r.dir, "cache"),
	}, common...)
	for _, name := range []string{sourceController, deploymentController} {
		if err := r.credentials(ctx, name, r.proxy.cluster()); err != nil {
			return err
		}
		if err := r.run(name); err != nil {
			return err
		}
	}
	return nil
}

// credentials writes the kubeconfig of a controller's service account.
func (r *rig) credentials(ctx context.Context, name string, cluster *clientcmdapi.Cluster) error {
	config, err := installation.AccountConfig(ctx, r.cp.RESTConfig(), installation.Namespace, name)
	if err != nil {
		return err
	}
	file := clientcmdapi.NewConfig()
	file.Clusters["c"], file.AuthInfos["u"] = cluster, &clientcmdapi.AuthInfo{Token: config.BearerToken}
	file.Contexts["x"], file.CurrentContext = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}, "x"
	r.arguments[name] = append(r.arguments[name], "--kubeconfig="+r.file(name+".kubeconfig"))
	return clientcmd.WriteToFile(*file, r.file(name+".kubeconfig"))
}

func (r *rig) file(name string) string { return filepath.Join(r.dir, name) }

// run starts a controller, which the kernel kills when this process ends, and keeps it running until kill.
func (r *rig) run(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.runLocked(name)
}

func (r *rig) runLocked(name string) error {
	command, err := r.launch(name, r.file(name), r.arguments[name])
	if err != nil {
		return err
	}
	p := &process{Cmd: command, ended: make(chan struct{})}
	r.processes[name] = p
	go func() {
		err := p.Wait()
		close(p.ended)
		r.restart(name, p, err)
	}()
	return nil
}

// restart starts a controller again after a second, unless it was killed, and says why it ended.
func (r *rig) restart(name string, ended *process, why error) {
	wanted := func() bool { return r.processes[name] == ended }
	r.mu.Lock()
	byItself := wanted()
	r.mu.Unlock()
	if !byItself {
		return
	}
	r.proxy.deaths.Add(1)
	fmt.Fprintf(os.Stderr, "%s ended by itself (%v) and is started again; its log ends in:\n%s\n", name, why, r.log(name))
	time.Sleep(time.Second)
	r.mu.Lock()
	defer r.mu.Unlock()
	if wanted() {
		if err := r.runLocked(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

// launch starts a program, with its output in the log of the given name.
func (r *rig) launch(name, program string, arguments []string) (*exec.Cmd, error) {
	log, err := os.OpenFile(r.file(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	process := exec.Command(program, arguments...)
	process.Stdout, process.Stderr = log, log
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return process, nil
}

// kill ends a controller as a crash would.
func (r *rig) kill(name string) {
	r.mu.Lock()
	p := r.processes[name]
	delete(r.processes, name)
	r.mu.Unlock()
	if p != nil {
		_ = p.Process.Kill()
		r.proxy.deaths.Add(1)
		<-p.ended
	}
}

func (r *rig) close() {
	r.kill(sourceController)
	r.kill(deploymentController)
	if r.dir != "" {
		_ = os.RemoveAll(r.dir)
	}
}

// namespace is a fresh namespace with a ServiceAccount that has all permissions.
func (r *rig) namespace(t *testing.T) string {
	t.Helper()
	namespace := controlplane.NewNamespace(t, r.cp)
	if err := installation.Admin(t.Context(), r.admin, namespace, "installer"); err != nil {
		t.Fatal(err)
	}
	return namespace
}

// push stores an image of the given layers and returns its reference.
func (r *rig) push(t *testing.T, repositoryAndTag string, layers ...fs.FS) string {
	t.Helper()
	if _, err := r.registry.Push(t.Context(), repositoryAndTag, layers...); err != nil {
		t.Fatal(err)
	}
	return r.registry.Host() + "/" + repositoryAndTag
}

// deploy creates a deployment of an image.
func (r *rig) deploy(t *testing.T, namespace, name, image string, change func(*v1alpha1.BundleDeployment)) client.ObjectKey {
	t.Helper()
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	d.Spec.ServiceAccountName = "installer"
	d.Spec.Source = &v1alpha1.BundleSourceSpec{
		Interval: v1alpha1.Duration{Duration: time.Second},
		Sources:  []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Ref: image, Insecure: true}}},
	}
	if change != nil {
		change(d)
	}
	if err := r.admin.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(d)
	t.Cleanup(func() { r.remove(t, key) })
	return key
}

// remove deletes a deployment and waits until it is gone.
func (r *rig) remove(t *testing.T, key client.ObjectKey) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := client.IgnoreNotFound(r.admin.Delete(ctx, d)); err != nil {
		t.Fatal(err)
	}
	r.eventually(t, ctx, "the deployment is gone", func(ctx context.Context) (bool, string) {
		var d v1alpha1.BundleDeployment
		err := r.admin.Get(ctx, key, &d)
		return apierrors.IsNotFound(err), describe(&d)
	})
}

func (r *rig) until(t *testing.T, key client.ObjectKey, what string, holds func(*v1alpha1.BundleDeployment) bool) *v1alpha1.BundleDeployment {
	t.Helper()
	var d v1alpha1.BundleDeployment
	r.eventually(t, t.Context(), what, func(ctx context.Context) (bool, string) {
		d = v1alpha1.BundleDeployment{}
		if err := r.admin.Get(ctx, key, &d); err != nil {
			return false, err.Error()
		}
		return d.Status.ObservedGeneration == d.Generation && holds(&d), describe(&d)
	})
	return &d
}

func (r *rig) ready(t *testing.T, key client.ObjectKey) *v1alpha1.BundleDeployment {
	t.Helper()
	return r.until(t, key, "Ready", func(d *v1alpha1.BundleDeployment) bool { return conditions.IsTrue(d, meta.ReadyCondition) })
}

func (r *rig) eventually(t *testing.T, ctx context.Context, what string, check func(context.Context) (bool, string)) {
	t.Helper()
	var seen string
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		done, now := check(ctx)
		if ctx.Err() == nil {
			seen = now
		}
		return done, nil
	})
	if err != nil {
		t.Fatalf("waited in vain: %s; last seen:\n%s", what, seen)
	}
}

func describe(d *v1alpha1.BundleDeployment) string {
	var text strings.Builder
	fmt.Fprintf(&text, "generation %d, observed %d, attempted %q, applied %q, healthy %q\n", d.Generation, d.Status.ObservedGeneration,
		d.Status.LastAttemptedRevision, d.Status.LastAppliedRevision, d.Status.LastHealthyRevision)
	for _, c := range d.Status.Conditions {
		fmt.Fprintf(&text, "  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	return text.String()
}

// log is the end of what a controller said.
func (r *rig) log(name string) string {
	content, err := os.ReadFile(r.file(name + ".log"))
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-4000):])
}
