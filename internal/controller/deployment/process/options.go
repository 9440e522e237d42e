// SPDX-License-Identifier: Apache-2.0

// Package process wires the process of the deployment controller: its flags, the reconciler and what it works with.
package process

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/satchel-dev/satchel/internal/controller/approvals"
	"github.com/satchel-dev/satchel/internal/controller/budget"
	"github.com/satchel-dev/satchel/internal/controller/deployment/abandon"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/clusters"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
	"github.com/satchel-dev/satchel/internal/worker"
)

// Options are the flags of the deployment controller's process.
type Options struct {
	// ArtifactServers are the base URLs from which artifacts may be loaded.
	ArtifactServers []string
	// FluxServers are the base URLs from which artifacts of Flux's sources may be loaded.
	FluxServers []string
	// ArtifactTokenFile holds the token for our own artifact servers.
	ArtifactTokenFile string
	// ArtifactCAFile holds the CAs by which https artifact servers are trusted.
	ArtifactCAFile string
	// Namespace of the controllers, which holds the Secret with the keys.
	Namespace string
	// SharedCatalogs is the namespace with BundleCatalogs for all namespaces; "" for none.
	SharedCatalogs string
	// CachePath is the folder of loaded artifacts and of snapshots of what was applied
	// last.
	CachePath string
	// CacheMiB bounds the loaded artifacts in it.
	CacheMiB int64
	// Egress decides which addresses kubeconfigs may lead to.
	Egress guard.AddressPolicy
	// OwnCluster permits kubeconfigs that lead to the cluster of the controller itself.
	OwnCluster bool
	// PerNamespace is how many deployments of one namespace to this cluster are reconciled at once.
	PerNamespace int
	// RemoteTurn is how long one turn of a deployment to another cluster may take.
	RemoteTurn time.Duration
	// AbandonAfter is how long a removal may fail without its ServiceAccount before it is abandoned; 0 for ever.
	AbandonAfter time.Duration
	// Approvals says how long BundleApprovals are kept.
	Approvals approvals.Retention
	// Remote limits the work on other clusters.
	Remote clusters.Limits
	// WatchLimit is how many watches of tenants' objects are open at once.
	WatchLimit int
	// Limits bound the artifacts.
	Limits fetch.Limits
	// Manifests bound what a bundle in them may contain.
	Manifests convert.Limits
	// Workers bound the processes that convert bundles.
	Workers worker.Options
}

// BindFlags adds the flags to a set.
func (o *Options) BindFlags(fs *pflag.FlagSet) {
	o.Limits, o.Manifests, o.Workers = fetch.DefaultLimits(), convert.DefaultLimits(), worker.DefaultOptions()
	fs.StringSliceVar(&o.ArtifactServers, "artifact-servers", []string{"http://bundle-source-controller.satchel-system.svc"},
		"The base URLs from which artifacts may be loaded; nothing else is ever contacted for them.")
	fs.StringSliceVar(&o.FluxServers, "flux-artifact-servers", []string{
		"http://source-controller.flux-system.svc.cluster.local.", "http://source-controller.flux-system.svc.cluster.local", "http://source-controller.flux-system.svc",
	}, "The base URLs from which artifacts of Flux's sources may be loaded; empty for none.")
	fs.StringVar(&o.ArtifactTokenFile, "artifact-token-file", "",
		"A file with the token that is sent only to the --artifact-servers; read again for each download.")
	fs.StringVar(&o.ArtifactCAFile, "artifact-ca-file", "",
		"A file with the CA certificates, in PEM, by which https artifact servers are trusted instead of those of the system; read again for each connection.")
	fs.StringVar(&o.SharedCatalogs, "shared-catalog-namespace", "",
		"The namespace with the BundleCatalogs that the BundleDeployments of all namespaces see, as in the source controller. Empty for none.")
	fs.StringVar(&o.CachePath, "cache-path", "/cache", "The folder for loaded artifacts and for what was applied last.")
	fs.Int64Var(&o.CacheMiB, "cache-size-mib", 1024, "How many MiB of artifacts are kept in the cache.")
	o.Egress.BindAddressFlags(fs, "that kubeconfigs may lead to", "that kubeconfigs may not lead to")
	fs.BoolVar(&o.OwnCluster, "allow-kubeconfig-to-own-cluster", false,
		"Permit kubeconfigs that lead to the cluster in which the controller runs; its API server's address, too.")
	fs.IntVar(&o.PerNamespace, "concurrent-per-namespace", 4,
		"How many deployments of one namespace are reconciled at once, and never more than half of --concurrent, so that one tenant does not block others; 0 for any number. Those on other clusters have --concurrent-remote.")
	fs.DurationVar(&o.RemoteTurn, "remote-turn", budget.Default,
		"How long one turn of a deployment on another cluster may take. Then its worker is released, and the next turn continues; three turns in a row without a confirmed request of the other cluster are a failure.")
	fs.DurationVar(&o.AbandonAfter, "abandon-after", abandon.Default,
		"How long a removal may fail because its ServiceAccount is gone, or, while its namespace is being deleted, because another cluster does not answer. Then what is left is annotated as orphaned where that is possible, and listed in an event and in the log. 0 for ever.")
	o.Approvals.BindFlags(fs, approval.RetentionUsage)
	o.Remote.BindFlags(fs)
	fs.IntVar(&o.WatchLimit, "watch-limit", 2000,
		"How many watches of the objects of deployments are open at once, at most a quarter of them for one ServiceAccount, and three quarters for all other clusters; all other objects are compared at the interval. 0 for none.")
	o.Limits.BindContentFlags(fs)
	o.Manifests.BindFlags(fs)
	o.Workers.BindFlags(fs)
}
