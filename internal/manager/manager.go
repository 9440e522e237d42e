// SPDX-License-Identifier: Apache-2.0

// Package manager wires a controller's process: flags, logs, the connection to
// the API server, caches, leader election, probes and metrics.
package manager

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	stdlog "log"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"time"

	"github.com/fluxcd/cli-utils/pkg/flowcontrol"
	fluxclient "github.com/fluxcd/pkg/runtime/client"
	"github.com/fluxcd/pkg/runtime/leaderelection"
	"github.com/fluxcd/pkg/runtime/logger"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/notify"
	"github.com/satchel-dev/satchel/internal/controller/shard"
	"github.com/satchel-dev/satchel/internal/controller/timeline"
	"github.com/satchel-dev/satchel/internal/repeat"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Options are the flags that both controllers share.
type Options struct {
	// MetricsAddr and HealthAddr are listen addresses; "0" switches one off.
	MetricsAddr, HealthAddr string
	// PprofAddr is a listen address for Go's profiles, on loopback; "0" switches them off.
	PprofAddr string
	// Concurrent is how many objects are reconciled at once. A value that is set before
	// the flags are bound is the default, which otherwise is 8.
	Concurrent int
	// Namespace is the controller's own namespace, which holds its lease.
	Namespace string
	// EventsAddr is the URL to which events are posted; "" for none.
	EventsAddr string
	// Version is set by the linker; if it is empty, the version recorded by the Go
	// toolchain is used.
	Version string
	// Shard selects the objects that this process reconciles: all of them by default.
	Shard shard.Shard
	// Trim drops what a process does not read of the deployments that it caches; may be nil.
	Trim func(*v1alpha1.BundleDeployment)

	selector     string
	printVersion bool
	log          logger.Options
	client       fluxclient.Options
	election     leaderelection.Options
}

// BindFlags adds the shared flags, and those of controller-runtime, to a set.
func (o *Options) BindFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.MetricsAddr, "metrics-addr", ":8080", "The address on which metrics are served; 0 switches them off.")
	fs.StringVar(&o.HealthAddr, "health-addr", ":9440", "The address on which /healthz and /readyz are served; 0 switches them off.")
	fs.StringVar(&o.PprofAddr, "pprof-addr", "0",
		"The address on loopback on which Go's profiles are served, such as 127.0.0.1:6060; 0 switches them off. Reach it with kubectl port-forward.")
	fs.IntVar(&o.Concurrent, "concurrent", cmp.Or(o.Concurrent, 8), "How many objects are reconciled at once.")
	fs.StringVar(&o.Namespace, "namespace", namespaceFromEnv(), "The controller's own namespace, which holds its leader election lease.")
	fs.StringVar(&o.EventsAddr, "events-addr", "",
		"The URL of Flux's notification controller, to which events are posted beside recording them in Kubernetes; empty for none.")
	fs.StringVar(&o.selector, "watch-label-selector", "",
		"Reconcile only objects with labels that match, such as sharding.fluxcd.io/key=shard1, so that several instances share the work; empty for all objects. Each selector has a leader of its own.")
	fs.BoolVar(&o.printVersion, "version", false, "Print the version and end.")
	o.log.BindFlags(fs)
	o.client.BindFlags(fs)
	o.election.BindFlags(fs)
	if kubeconfig := flag.CommandLine.Lookup("kubeconfig"); kubeconfig != nil {
		fs.AddGoFlag(kubeconfig)
	}
}

func namespaceFromEnv() string {
	if namespace := os.Getenv("RUNTIME_NAMESPACE"); namespace != "" {
		return namespace
	}
	return "satchel-system"
}

// Scheme knows Satchel's kinds, Flux's sources, and those of Kubernetes.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(sourcev1.AddToScheme(scheme))
	return scheme
}

// Main parses the command line, builds a manager of the given name, lets setup
// add to it, and runs it until the process is told to end. It returns the exit
// code: 0, 1 after a failure, 2 for a wrong command line. With --version it only
// prints the version.
func Main(name string, o *Options, fs *pflag.FlagSet, args []string, setup func(context.Context, ctrl.Manager) error) int {
	err := o.parse(fs, args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 2
	case o.printVersion:
		fmt.Fprintln(os.Stdout, name, version(o.Version))
		return 0
	}
	logger.SetLogger(newErrorLog(newLogger(o.log, os.Stderr)))
	stdlog.SetFlags(0)
	stdlog.SetOutput(libraryLog{})
	ctx := ctrl.SetupSignalHandler()
	if err := o.run(ctx, name, setup); err != nil {
		ctrl.Log.Error(err, "the controller ended", "controller", name)
		return 1
	}
	return 0
}

// parse reads the command line, which consists of flags only.
func (o *Options) parse(fs *pflag.FlagSet, args []string) error {
	o.BindFlags(fs)
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: there are only flags, see --help", fs.Arg(0))
	}
	if err := checkLoopback(o.PprofAddr); err != nil {
		return fmt.Errorf("--pprof-addr: %w", err)
	}
	var err error
	o.Shard, err = shard.Parse(o.selector)
	return err
}

// checkLoopback refuses a listen address that other machines could reach: profiles are served without
// authentication.
func checkLoopback(address string) error {
	if address == "0" {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not an address: give one on loopback, such as 127.0.0.1:6060", address)
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
		return fmt.Errorf("%q can be reached by others: give an address on loopback, such as 127.0.0.1:6060", address)
	}
	return nil
}

// version is the version set by the linker, or else the recorded one.
func version(linked string) string {
	if linked != "" {
		return linked
	}
	if build, found := debug.ReadBuildInfo(); found && build.Main.Version != "" && build.Main.Version != "(devel)" {
		return build.Main.Version
	}
	return "devel"
}

func (o *Options) run(ctx context.Context, name string, setup func(context.Context, ctrl.Manager) error) error {
	ctrl.Log.Info("starting", "controller", name, "version", version(o.Version))
	config, err := o.restConfig(ctx)
	if err != nil {
		return err
	}
	mgr, err := New(config, name, *o)
	if err != nil {
		return err
	}
	if err := setup(ctx, mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// restConfig connects without a rate limit of its own where the API server has
// priority and fairness.
func (o *Options) restConfig(ctx context.Context) (*rest.Config, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server (in the cluster, by --kubeconfig or KUBECONFIG): %w", err)
	}
	config.QPS, config.Burst = o.client.QPS, o.client.Burst
	if fair, err := flowcontrol.IsEnabled(ctx, config); err == nil && fair {
		config.QPS, config.Burst = -1, -1
	}
	return config, nil
}

// New builds a manager with probes, and with a cache that holds only Satchel's own
// kinds: other objects are read by name from the API server.
func New(config *rest.Config, name string, o Options) (ctrl.Manager, error) {
	config = rest.CopyConfig(config)
	guard := timeline.New(time.Now)
	guard.Wrap(config)
	lead := newLeading(o.Namespace, o.Shard.Lease(name), o.election.LeaseDuration)
	if o.election.Enable {
		config.Wrap(lead.wrap)
	}
	repeat.Wrap(config)
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        Scheme(),
		Metrics:                       metricsserver.Options{BindAddress: o.MetricsAddr},
		HealthProbeBindAddress:        o.HealthAddr,
		PprofBindAddress:              o.PprofAddr,
		GracefulShutdownTimeout:       new(gracePeriod),
		LeaderElection:                o.election.Enable,
		LeaderElectionID:              o.Shard.Lease(name),
		LeaderElectionNamespace:       o.Namespace,
		LeaderElectionReleaseOnCancel: o.election.ReleaseOnCancel,
		LeaseDuration:                 &o.election.LeaseDuration,
		RenewDeadline:                 &o.election.RenewDeadline,
		RetryPeriod:                   &o.election.RetryPeriod,
		Cache: cache.Options{
			DefaultTransform: strip,
			ByObject: map[client.Object]cache.ByObject{
				&v1alpha1.BundleDeployment{}: {Transform: o.trim},
				&corev1.Namespace{}:          {Label: labels.SelectorFromSet(labels.Set{v1alpha1.RequireSignaturesLabel: v1alpha1.RequireSignatures})}, // few namespaces, watched by the source controller
			},
		},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{
			&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Namespace{}, &corev1.ServiceAccount{},
		}}},
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the %s: %w", name, err)
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("lease", lead.check)); err != nil {
		return nil, err
	}
	if o.EventsAddr != "" {
		if mgr, err = notifying(mgr, name, o); err != nil {
			return nil, err
		}
	}
	return timeline.With(mgr, guard)
}

// strip removes what no controller reads of any object, before it is cached. A cached object is never written back with an
// update: patches contain only what changed.
func strip(object any) (any, error) {
	if of, err := apimeta.Accessor(object); err == nil {
		of.SetManagedFields(nil)
		if annotations := of.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
			delete(annotations, corev1.LastAppliedConfigAnnotation)
			of.SetAnnotations(annotations)
		}
	}
	return object, nil
}

// trim removes unused fields of a deployment before it is cached. Deployments of other
// shards stay in the cache, since those of this one may refer to them and their sources
// may belong to this one.
func (o Options) trim(object any) (any, error) {
	if d, ok := object.(*v1alpha1.BundleDeployment); ok {
		if !o.Shard.Owns(d) {
			d.Status.Inventory = identity(d.Status.Inventory)
		}
		effective.TrimSpec(d)
		if o.Trim != nil {
			o.Trim(d)
		}
	}
	return strip(object)
}

// identity is what tells which cluster holds the objects of an inventory.
func identity(of *v1alpha1.Inventory) *v1alpha1.Inventory {
	if of == nil || of.Target == "" {
		return nil
	}
	return &v1alpha1.Inventory{Target: of.Target}
}

// notifier is a manager with a recorder that also posts events.
type notifier struct {
	ctrl.Manager
	recorder *notify.Recorder
}

// GetEventRecorder implements ctrl.Manager.
func (n notifier) GetEventRecorder(string) events.EventRecorder { return n.recorder }

func notifying(mgr ctrl.Manager, name string, o Options) (ctrl.Manager, error) {
	recorder, err := notify.New(mgr.GetEventRecorder(name), mgr.GetScheme(), notify.Options{
		Controller: name, Address: o.EventsAddr, Registry: metrics.Registry,
	})
	if err != nil {
		return nil, err
	}
	return notifier{mgr, recorder}, mgr.Add(recorder)
}

// gracePeriod is how long running reconciles may continue after a signal: less than the
// 30 s after which a kubelet kills the process.
const gracePeriod = 20 * time.Second
