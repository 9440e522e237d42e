// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/satchel-dev/satchel/internal/artifact/server"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/artifact/upload"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/controller/census"
	"github.com/satchel-dev/satchel/internal/controller/egress"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/shard"
	"github.com/satchel-dev/satchel/internal/controller/source/tokenreview"
	"github.com/satchel-dev/satchel/internal/controller/timeline"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
	"github.com/satchel-dev/satchel/internal/fetch/image/cloud"
)

// Options are the flags of the source controller's process.
type Options struct {
	// StoragePath is the folder of the artifacts.
	StoragePath string
	// StorageAddr is the listen address of the artifact server.
	StorageAddr string
	// StorageAdvAddr is the host, with a port unless it is that of the scheme, in
	// artifact URLs.
	StorageAdvAddr string
	// UploadAddr is the listen address for uploads; "" for none.
	UploadAddr string
	// TLSCert and TLSKey are files with the artifact server's certificate and key, in
	// PEM; without them it speaks plain HTTP.
	TLSCert, TLSKey string
	// StorageQuota is how many bytes of artifacts a namespace may store; 0 for any
	// number.
	StorageQuota int64
	// Retain is how many superseded artifacts a source keeps at least.
	Retain int
	// RetainFor is how long a superseded artifact is kept at least.
	RetainFor time.Duration
	// PerNamespace is how many sources of a namespace are fetched at once.
	PerNamespace int
	// TrustEvery is how often the Secrets with the trust of sources are checked; 0 for each minute.
	TrustEvery time.Duration
	// Auth says whether consumers of artifacts need a token: AuthOff or AuthToken.
	Auth string
	// AuthAudience is the audience of those tokens.
	AuthAudience string
	// Readers are the users who may read the artifacts of every namespace.
	Readers []string
	// CloudLogins permits sources to log in to registries as the controller.
	CloudLogins bool
	// Limits bound everything that is fetched.
	Limits fetch.Limits
	// Policy says which addresses may be reached.
	Policy guard.AddressPolicy
	// Files is the file system for artifacts; nil for the real one. Tests inject failures.
	Files volume.FileSystem
}

// Concurrent is the default number of sources that are reconciled at once. Most of the
// time they wait for upstreams, and downloads are not kept in memory.
const Concurrent = 20

// Values of Options.Auth.
const (
	// AuthOff serves artifacts without authentication. So does "".
	AuthOff = "off"
	// AuthToken requires a token of a ServiceAccount.
	AuthToken = "token"
)

// BindFlags adds the flags to a set.
func (o *Options) BindFlags(fs *pflag.FlagSet) {
	o.Limits = fetch.DefaultLimits()
	fs.StringVar(&o.StoragePath, "storage-path", "/data", "The folder in which artifacts are stored.")
	fs.StringVar(&o.StorageAddr, "storage-addr", ":9090", "The address on which artifacts are served.")
	fs.StringVar(&o.StorageAdvAddr, "storage-adv-addr", "bundle-source-controller.satchel-system.svc",
		"The host, with a port unless it is 80 (443 with TLS), under which consumers reach the artifact server.")
	fs.StringVar(&o.UploadAddr, "upload-addr", fmt.Sprintf("127.0.0.1:%d", upload.Port),
		"The address on which uploads for BundleSources of the kind upload are received, without TLS: a loopback address of the Pod, for port forwards. Empty: uploads are off.")
	fs.StringVar(&o.TLSCert, "storage-tls-cert", "",
		"A file with the certificate of the artifact server, in PEM; read again when it changes. Artifact URLs are https then.")
	fs.StringVar(&o.TLSKey, "storage-tls-key", "", "A file with the key of that certificate, in PEM.")
	fs.Int64Var(&o.StorageQuota, "storage-quota-per-namespace", 1<<30,
		"How many bytes the artifacts of one namespace may take in storage, so that one tenant does not fill the shared volume; 0 for any number.")
	fs.IntVar(&o.Retain, "artifact-retention-records", 2, "How many artifacts of a source are kept at least, the advertised one included.")
	fs.DurationVar(&o.RetainFor, "artifact-retention-ttl", time.Minute, "How long a superseded artifact is kept at least.")
	fs.IntVar(&o.PerNamespace, "concurrent-per-namespace", 4,
		"How many sources of one namespace are fetched at once, and never more than half of --concurrent, so that slow upstreams of one tenant do not block others; 0 for any number.")
	fs.StringVar(&o.Auth, "artifact-auth", AuthOff,
		"Whether consumers of artifacts need a token of a ServiceAccount: off or token. Flux's controllers send none.")
	fs.StringVar(&o.AuthAudience, "artifact-audience", "satchel-artifacts", "The audience that tokens of consumers must have.")
	fs.StringSliceVar(&o.Readers, "artifact-readers", []string{"system:serviceaccount:satchel-system:bundle-deployment-controller"},
		"The users who may read the artifacts of every namespace; any other ServiceAccount reads those of its own.")
	fs.BoolVar(&o.CloudLogins, "cloud-logins", false,
		"Let images with a provider (aws, azure, gcp) log in with the cloud identity of this controller. Users who may write a BundleSource can then read everything that this identity may read.")
	o.Limits.BindFlags(fs)
	o.Policy.BindFlags(fs)
}

// Setup adds the source controller and its artifact server to a manager. It reconciles
// the sources of a shard, with the given number of workers.
func (o Options) Setup(_ context.Context, mgr ctrl.Manager, concurrent int, part shard.Shard) error {
	readers, err := o.readers(mgr.GetClient())
	if err != nil {
		return err
	}
	scheme, err := o.scheme()
	if err != nil {
		return err
	}
	store, err := storage.Open(storage.Options{
		Dir: filepath.Join(o.StoragePath, "artifacts"), BaseURL: scheme + "://" + o.StorageAdvAddr,
		NamespaceBytes: o.StorageQuota, FS: o.Files,
	})
	if err != nil {
		return err
	}
	handler := server.NewHandler(store, server.Options{Readers: readers})
	scratch, err := emptyFolder(filepath.Join(o.StoragePath, "scratch"))
	if err != nil {
		return err
	}
	steps, err := pipeline.NewMetrics(metrics.Registry)
	measures, failed := NewMeasures(metrics.Registry)
	counted := census.Census{Reader: mgr.GetCache(), Shard: part.Listed(), Leads: mgr.Elected(), Sources: true}
	if err := errors.Join(err, failed, metrics.Registry.Register(storeFigures{store, handler}), metrics.Registry.Register(counted)); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	policy := o.Policy
	policy.Protected = guard.NewProtected(slices.Concat(egress.APIServers(mgr.GetConfig().Host, os.Getenv("KUBERNETES_SERVICE_HOST")),
		egress.ArtifactServer(o.StorageAdvAddr, o.StorageAddr), egress.UploadServer(o.UploadAddr))...)
	deps := Deps{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder(FieldManager), Shard: part,
		Metrics: steps, Measures: measures, Store: store, Scratch: scratch, Limits: o.Limits, Policy: policy,
		Retain: o.Retain, RetainFor: o.RetainFor, PerNamespace: pipeline.TurnShare(o.PerNamespace, concurrent), Concurrent: concurrent, Timeline: timeline.Of(mgr),
		TrustEvery: o.TrustEvery, Running: pipeline.NewRunning(),
	}
	if err := errors.Join(deps.Running.Register(metrics.Registry), mgr.AddHealthzCheck("reconciles", deps.Running.Check)); err != nil {
		return fmt.Errorf("preparing the health check: %w", err)
	}
	if o.CloudLogins {
		deps.CloudLogins = cloud.New().Keychain
	}
	reconciler := NewReconciler(deps)
	return errors.Join(
		mgr.Add(sweepOnce(reconciler)),
		o.addServer(mgr, handler),
		o.addUploads(mgr, reconciler),
		reconciler.SetupWithManager(mgr, concurrent),
	)
}

// readers authorizes readers of artifacts; nil allows every client.
func (o Options) readers(c client.Client) (server.Readers, error) {
	switch o.Auth {
	case "", AuthOff:
		return nil, nil
	case AuthToken:
		if o.AuthAudience == "" {
			return nil, errors.New("--artifact-audience is empty: name the audience of tokens for artifacts")
		}
		return tokenreview.New(c, o.AuthAudience, o.Readers).Identify, nil
	}
	return nil, fmt.Errorf("--artifact-auth is %q: want %s or %s", o.Auth, AuthOff, AuthToken)
}

// emptyFolder creates a folder, and removes leftovers of a killed process.
func emptyFolder(dir string) (string, error) {
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return "", fmt.Errorf("preparing the scratch folder: %w: check --storage-path", err)
	}
	return dir, nil
}

// sweepOnce runs Sweep. Files that it could not remove stay until the next start.
func sweepOnce(r *Reconciler) manager.RunnableFunc {
	return func(ctx context.Context) error {
		if err := r.Sweep(ctx); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "artifacts of deleted sources stay until the next start")
		}
		return nil
	}
}
