// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2erig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
	"github.com/satchel-dev/satchel/tests/upstream"
)

// The controllers of a rig, which are also the names of their programs and ServiceAccounts.
const (
	SourceController     = "bundle-source-controller"
	DeploymentController = "bundle-deployment-controller"
)

// Options are what a rig needs beside a control plane.
type Options struct {
	// Cluster is how the controllers reach the API server, such as through a proxy. Default: directly.
	Cluster *clientcmdapi.Cluster
	// Uploads is the address at which the source controller takes in uploads. Default: an unused one.
	Uploads string
	// Ended is called each time a controller ended, by itself or by Kill.
	Ended func()
}

// Rig is the whole of Satchel on a control plane.
type Rig struct {
	CP        *controlplane.ControlPlane
	Admin     client.Client
	Registry  *upstream.Registry
	Dir       string              // with the programs, their logs and kubeconfigs
	Uploads   string              // address of the source controller's
	Arguments map[string][]string // of the controllers

	cluster *clientcmdapi.Cluster
	ended   func()

	mu        sync.Mutex
	processes map[string]*process
}

// process is a controller of the rig. Like a kubelet, the rig starts one again that ended by itself.
type process struct {
	*exec.Cmd

	ended chan struct{}
}

// New installs Satchel on a control plane, and starts its controllers, which run until Close.
func New(ctx context.Context, cp *controlplane.ControlPlane, options Options) (*Rig, error) {
	r := &Rig{
		CP: cp, Uploads: options.Uploads, Arguments: map[string][]string{},
		cluster: options.Cluster, ended: options.Ended, processes: map[string]*process{},
	}
	if r.cluster == nil {
		r.cluster = &clientcmdapi.Cluster{Server: cp.RESTConfig().Host, CertificateAuthorityData: cp.RESTConfig().CAData}
	}
	if r.ended == nil {
		r.ended = func() {}
	}
	return r, r.start(ctx)
}

func (r *Rig) start(ctx context.Context) (err error) {
	if err := installation.Install(ctx, r.CP.RESTConfig()); err != nil {
		return err
	}
	if r.Admin, err = installation.Client(r.CP.RESTConfig()); err != nil {
		return err
	}
	if r.Dir, err = os.MkdirTemp("", "satchel-e2e-*"); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", r.Dir+"/", "./cmd/...")
	build.Dir = installation.Root()
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the controllers: %w\n%s", err, output)
	}
	r.Registry = upstream.NewRegistry(ctx)
	return r.StartControllers(ctx)
}

// StartControllers starts both controllers, with new addresses and credentials.
func (r *Rig) StartControllers(ctx context.Context) (err error) {
	storage, err := controlplane.FreeAddress()
	if err != nil {
		return err
	}
	if r.Uploads == "" {
		if r.Uploads, err = controlplane.FreeAddress(); err != nil {
			return err
		}
	}
	common := []string{"--metrics-addr=0", "--health-addr=0"}
	r.Arguments[SourceController] = append([]string{
		"--storage-path=" + filepath.Join(r.Dir, "data"), "--storage-addr=" + storage, "--storage-adv-addr=" + storage, "--upload-addr=" + r.Uploads,
		"--egress-allow=127.0.0.0/8", "--insecure-hosts=127.0.0.1", "--artifact-retention-ttl=1s",
	}, common...)
	r.Arguments[DeploymentController] = append([]string{
		"--artifact-servers=http://" + storage, "--cache-path=" + filepath.Join(r.Dir, "cache"),
	}, common...)
	for _, name := range []string{SourceController, DeploymentController} {
		if err := r.credentials(ctx, name); err != nil {
			return err
		}
		if err := r.Start(name); err != nil {
			return err
		}
	}
	return nil
}

// credentials writes the kubeconfig of a controller's service account.
func (r *Rig) credentials(ctx context.Context, name string) error {
	config, err := installation.AccountConfig(ctx, r.CP.RESTConfig(), installation.Namespace, name)
	if err != nil {
		return err
	}
	file := clientcmdapi.NewConfig()
	file.Clusters["c"], file.AuthInfos["u"] = r.cluster, &clientcmdapi.AuthInfo{Token: config.BearerToken}
	file.Contexts["x"], file.CurrentContext = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}, "x"
	r.Arguments[name] = append(r.Arguments[name], "--kubeconfig="+r.File(name+".kubeconfig"))
	return clientcmd.WriteToFile(*file, r.File(name+".kubeconfig"))
}

// File is a path in the rig's folder.
func (r *Rig) File(name string) string { return filepath.Join(r.Dir, name) }

// Start starts a controller, which the kernel kills when this process ends, and keeps it running until Kill.
func (r *Rig) Start(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.startLocked(name)
}

func (r *Rig) startLocked(name string) error {
	command, err := r.Launch(name, r.File(name), r.Arguments[name])
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
func (r *Rig) restart(name string, ended *process, why error) {
	wanted := func() bool { return r.processes[name] == ended }
	r.mu.Lock()
	byItself := wanted()
	r.mu.Unlock()
	if !byItself {
		return
	}
	r.ended()
	fmt.Fprintf(os.Stderr, "%s ended by itself (%v) and is started again; its log ends in:\n%s\n", name, why, r.Log(name))
	time.Sleep(time.Second)
	r.mu.Lock()
	defer r.mu.Unlock()
	if wanted() {
		if err := r.startLocked(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

// Launch starts a program, with its output in the log of the given name.
func (r *Rig) Launch(name, program string, arguments []string) (*exec.Cmd, error) {
	log, err := os.OpenFile(r.File(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
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

// Kill ends a controller as a crash would.
func (r *Rig) Kill(name string) {
	r.mu.Lock()
	p := r.processes[name]
	delete(r.processes, name)
	r.mu.Unlock()
	if p != nil {
		_ = p.Process.Kill()
		r.ended()
		<-p.ended
	}
}

// Pids are the processes of the controllers that run, by name.
func (r *Rig) Pids() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[string]int{}
	for name, process := range r.processes {
		found[name] = process.Process.Pid
	}
	return found
}

// Log is the end of what a controller said.
func (r *Rig) Log(name string) string {
	content, err := os.ReadFile(r.File(name + ".log"))
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-4000):])
}

// Close ends the controllers, and removes the folder.
func (r *Rig) Close() {
	r.Kill(SourceController)
	r.Kill(DeploymentController)
	if r.Dir != "" {
		_ = os.RemoveAll(r.Dir)
	}
}
