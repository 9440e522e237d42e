// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/tests/controlplane/pki"
	"github.com/satchel-dev/satchel/tests/controlplane/progress"
)

// ControlPlane is a running Kubernetes control plane, or an existing cluster that was given to the tests.
type ControlPlane struct {
	opts       Options
	dir        string
	temporary  bool
	binDir     string
	kubeconfig string
	rest       *rest.Config
	audit      string

	etcd, apiServer, controllerManager, scheduler, kwok *Component

	store Store

	// The components hold the read end of the lifeline, and exit when the write end closes.
	lifelineRead, lifeline *os.File

	locks []*os.File

	mu       sync.Mutex
	reserved []*os.File

	stopOnce sync.Once
	stopErr  error
}

// Start builds the control plane if need be, waits for one of the machine's two places, starts all
// components, and returns when the API server answers and the nodes are ready. Stop it in the end. While
// the shared control plane of a test binary runs, see [StopShared] and [Options].Reserve.
func Start(ctx context.Context, opts Options) (*ControlPlane, error) {
	if opts.Beside == nil && sharedRuns() {
		return nil, errSharedRuns
	}
	return start(ctx, opts)
}

func start(ctx context.Context, opts Options) (*ControlPlane, error) {
	opts = opts.withDefaults()
	bin, err := Build(ctx, opts.Progress)
	if err != nil {
		return nil, err
	}
	cp := &ControlPlane{opts: opts, binDir: filepath.Dir(bin)}
	if err := cp.bringUp(ctx); err != nil {
		return nil, errors.Join(err, cp.Stop())
	}
	return cp, nil
}

func (cp *ControlPlane) bringUp(ctx context.Context) error {
	if err := cp.takePlace(ctx); err != nil {
		return err
	}
	started := time.Now()
	if err := cp.openDir(ctx); err != nil {
		return err
	}
	if err := cp.prepare(); err != nil {
		return fmt.Errorf("preparing a control plane in %s: %w", cp.dir, err)
	}
	defer progress.Report(cp.opts.Progress, func() string { return "starting the control plane in " + cp.dir })()
	if err := cp.startComponents(ctx); err != nil {
		return err
	}
	if err := cp.makeUsable(ctx); err != nil {
		return err
	}
	progress.Sayf(cp.opts.Progress, "control plane in %s is ready after %s", cp.dir, time.Since(started).Round(100*time.Millisecond))
	return nil
}

// prepare writes the files and describes the components.
func (cp *ControlPlane) prepare() error {
	l := layout{dir: cp.dir, certs: pki.Dir(filepath.Join(cp.dir, "pki")), opts: cp.opts}
	if err := l.certs.Create(); err != nil {
		return err
	}
	var err error
	if l.ports, err = loadPorts(l.path("ports.json")); err != nil {
		return fmt.Errorf("choosing ports: %w", err)
	}
	l.etcd = address(l.ports.Etcd)
	if cp.opts.EtcdProxy != nil {
		if l.etcd, err = cp.opts.EtcdProxy(l.etcd); err != nil {
			return fmt.Errorf("starting the proxy of etcd: %w", err)
		}
	}
	if err := l.writeFiles(); err != nil {
		return err
	}
	cp.audit, cp.kubeconfig = l.audit(), l.kubeconfig(pki.AdminUser)
	if cp.rest, err = loadRESTConfig(cp.kubeconfig); err != nil {
		return err
	}
	return cp.describe(l)
}

// describe fills in the components.
func (cp *ControlPlane) describe(l layout) error {
	etcdTLS, err := l.certs.Client("etcd-client", pki.EtcdCA)
	if err != nil {
		return err
	}
	adminTLS, err := l.certs.Client(pki.AdminUser, pki.ClusterCA)
	if err != nil {
		return err
	}
	if cp.lifelineRead, cp.lifeline, err = os.Pipe(); err != nil {
		return fmt.Errorf("creating the lifeline: %w", err)
	}
	component := func(name string, args []string, port int, healthy func(context.Context) error) *Component {
		return &Component{
			name: name, args: args, port: port, dir: cp.dir, binDir: cp.binDir, lifeline: cp.lifelineRead, healthy: healthy,
		}
	}
	p := l.ports
	cp.store = Store{client: &http.Client{Transport: &http.Transport{TLSClientConfig: etcdTLS}}, url: url(p.Etcd)}
	cp.etcd = component("etcd", l.etcdArgs(), p.Etcd, probe(etcdTLS, p.Etcd, "/health"))
	cp.apiServer = component("kube-apiserver", l.apiServerArgs(), p.APIServer, probe(adminTLS, p.APIServer, "/readyz"))
	cp.controllerManager = component("kube-controller-manager", l.controllerManagerArgs(), p.ControllerManager,
		probe(adminTLS, p.ControllerManager, "/healthz"))
	cp.scheduler = component("kube-scheduler", l.schedulerArgs(), p.Scheduler, probe(adminTLS, p.Scheduler, "/healthz"))
	cp.kwok = component("kwok", l.kwokArgs(), p.Kwok, probe(adminTLS, p.Kwok, "/healthz"))
	return nil
}

// startComponents starts etcd, then the API server, then the rest at once.
func (cp *ControlPlane) startComponents(ctx context.Context) error {
	if err := cp.etcd.Start(ctx); err != nil {
		return err
	}
	if cp.opts.Seed != nil {
		if err := cp.opts.Seed(ctx, cp.store); err != nil {
			return fmt.Errorf("writing to etcd before the API server starts: %w", err)
		}
	}
	if err := cp.apiServer.Start(ctx); err != nil {
		return err
	}
	return together(
		func() error { return cp.controllerManager.Start(ctx) },
		func() error { return cp.scheduler.Start(ctx) },
		func() error { return cp.kwok.Start(ctx) },
	)
}

// Stop ends all components, the API server before etcd, and gives the place on the machine up. It removes
// a temporary directory, and as its state is lost then, kills at once; a given directory is kept.
func (cp *ControlPlane) Stop() error {
	cp.stopOnce.Do(func() { cp.stopErr = cp.stop() })
	return cp.stopErr
}

func (cp *ControlPlane) stop() error {
	errs := []error{
		together(cp.end(cp.controllerManager), cp.end(cp.scheduler), cp.end(cp.kwok)),
		cp.end(cp.apiServer)(),
		cp.end(cp.etcd)(),
	}
	for _, end := range []*os.File{cp.lifeline, cp.lifelineRead} {
		if end != nil {
			errs = append(errs, end.Close())
		}
	}
	if cp.temporary {
		errs = append(errs, os.RemoveAll(cp.dir))
	}
	unlock(cp.locks...)
	unlock(cp.reserved...)
	return errors.Join(errs...)
}

// end returns a function that ends a component, gently where its state is kept.
func (cp *ControlPlane) end(component *Component) func() error {
	return func() error {
		switch {
		case component == nil || component.external():
			return nil
		case cp.temporary:
			return component.Kill()
		default:
			// The caller's context may have ended, and still nothing may be left behind.
			return component.Stop(context.Background())
		}
	}
}

// RESTConfig returns a fresh client configuration of the administrator, with a high rate limit.
func (cp *ControlPlane) RESTConfig() *rest.Config { return rest.CopyConfig(cp.rest) }

// KubeconfigPath returns the file with the administrator's kubeconfig.
func (cp *ControlPlane) KubeconfigPath() string { return cp.kubeconfig }

// BinDir returns a folder with kubectl and the other [Programs], for PATH; empty on an existing cluster.
func (cp *ControlPlane) BinDir() string { return cp.binDir }

// Dir returns the directory with state and logs; empty on an existing cluster.
func (cp *ControlPlane) Dir() string { return cp.dir }

// External reports whether this is an existing cluster: its components and audit log are out of reach.
func (cp *ControlPlane) External() bool { return cp.etcd.external() }

// Etcd returns the store of the API server.
func (cp *ControlPlane) Etcd() *Component { return cp.etcd }

// Store returns the content of etcd.
func (cp *ControlPlane) Store() Store { return cp.store }

// APIServer returns kube-apiserver.
func (cp *ControlPlane) APIServer() *Component { return cp.apiServer }

// ControllerManager returns kube-controller-manager.
func (cp *ControlPlane) ControllerManager() *Component { return cp.controllerManager }

// Scheduler returns kube-scheduler.
func (cp *ControlPlane) Scheduler() *Component { return cp.scheduler }

// Kwok returns the keeper of the fake nodes and Pods.
func (cp *ControlPlane) Kwok() *Component { return cp.kwok }

// httpClient returns a client for the administrator's requests that bypass client-go.
func (cp *ControlPlane) httpClient() (*http.Client, error) { return rest.HTTPClientFor(cp.rest) }

// together runs functions at the same time and joins their errors.
func together(functions ...func() error) error {
	errs := make([]error, len(functions))
	var group sync.WaitGroup
	for i, function := range functions {
		group.Go(func() { errs[i] = function() })
	}
	group.Wait()
	return errors.Join(errs...)
}
