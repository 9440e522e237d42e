// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/artifact/server"
	"github.com/satchel-dev/satchel/internal/artifact/upload"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/controller/source"
	"github.com/satchel-dev/satchel/internal/controller/source/tokenreview"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
)

// Options are the flags of the source controller's process.
type Options struct {
	// Storage is where artifacts are kept, and for how long.
	Storage StorageOptions
	// Server is the artifact server.
	Server ServerOptions
	// UploadAddr is the listen address for uploads; "" for none.
	UploadAddr string
	// PerNamespace is how many sources of a namespace are fetched at once.
	PerNamespace int
	// TrustEvery is how often the Secrets with the trust of sources are checked; 0 for each minute.
	TrustEvery time.Duration
	// CloudLogins permits sources to log in to registries as the controller.
	CloudLogins bool
	// Limits bound everything that is fetched.
	Limits fetch.Limits
	// Catalogs are about BundleCatalogs.
	Catalogs CatalogOptions
	// Policy says which addresses may be reached.
	Policy guard.AddressPolicy
}

// StorageOptions are about the artifacts of the source controller.
type StorageOptions struct {
	// Path is the folder of the artifacts.
	Path string
	// Quota is how many bytes of artifacts a namespace may store; 0 for any number.
	Quota int64
	// Retention says which superseded artifacts are kept.
	Retention source.Retention
	// Files is the file system for artifacts; nil for the real one. Tests inject failures.
	Files volume.FileSystem
}

// ServerOptions are about the artifact server.
type ServerOptions struct {
	// Addr is its listen address.
	Addr string
	// AdvAddr is the host, with a port unless it is that of the scheme, in artifact URLs.
	AdvAddr string
	// TLSCert and TLSKey are files with its certificate and key, in PEM; without them it
	// speaks plain HTTP.
	TLSCert, TLSKey string
	// Auth says whether consumers of artifacts need a token: AuthOff or AuthToken.
	Auth string
	// AuthAudience is the audience of those tokens.
	AuthAudience string
	// Readers are the users who may read the artifacts of every namespace.
	Readers []string
}

// Concurrent is the default number of sources that are reconciled at once. Most of the
// time they wait for upstreams, and downloads are not kept in memory.
const Concurrent = 20

// Values of ServerOptions.Auth.
const (
	// AuthOff serves artifacts without authentication. So does "".
	AuthOff = "off"
	// AuthToken requires a token of a ServiceAccount.
	AuthToken = "token"
)

// BindFlags adds the flags to a set.
func (o *Options) BindFlags(fs *pflag.FlagSet) {
	o.Limits = fetch.DefaultLimits()
	o.Storage.bindFlags(fs)
	o.Server.bindFlags(fs)
	fs.StringVar(&o.UploadAddr, "upload-addr", fmt.Sprintf("127.0.0.1:%d", upload.Port),
		"The address on which uploads for BundleSources of the kind upload are received, without TLS: a loopback address of the Pod, for port forwards. Empty: uploads are off.")
	fs.IntVar(&o.PerNamespace, "concurrent-per-namespace", 4,
		"How many sources of one namespace are fetched at once, and never more than half of --concurrent, so that slow upstreams of one tenant do not block others; 0 for any number.")
	fs.BoolVar(&o.CloudLogins, "cloud-logins", false,
		"Let images with a provider (aws, azure, gcp) log in with the cloud identity of this controller. Users who may write a BundleSource can then read everything that this identity may read.")
	o.Limits.BindFlags(fs)
	o.Catalogs.bindFlags(fs)
	o.Policy.BindFlags(fs)
}

func (o *StorageOptions) bindFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Path, "storage-path", "/data", "The folder in which artifacts are stored.")
	fs.Int64Var(&o.Quota, "storage-quota-per-namespace", 1<<30,
		"How many bytes the artifacts of one namespace may take in storage, so that one tenant does not fill the shared volume; 0 for any number.")
	fs.IntVar(&o.Retention.Records, "artifact-retention-records", 2, "How many artifacts of a source are kept at least, the advertised one included.")
	fs.DurationVar(&o.Retention.TTL, "artifact-retention-ttl", time.Minute, "How long a superseded artifact is kept at least.")
}

func (o *ServerOptions) bindFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Addr, "storage-addr", ":9090", "The address on which artifacts are served.")
	fs.StringVar(&o.AdvAddr, "storage-adv-addr", "bundle-source-controller.satchel-system.svc",
		"The host, with a port unless it is 80 (443 with TLS), under which consumers reach the artifact server.")
	fs.StringVar(&o.TLSCert, "storage-tls-cert", "",
		"A file with the certificate of the artifact server, in PEM; read again when it changes. Artifact URLs are https then.")
	fs.StringVar(&o.TLSKey, "storage-tls-key", "", "A file with the key of that certificate, in PEM.")
	fs.StringVar(&o.Auth, "artifact-auth", AuthOff,
		"Whether consumers of artifacts need a token of a ServiceAccount: off or token. Flux's controllers send none.")
	fs.StringVar(&o.AuthAudience, "artifact-audience", "satchel-artifacts", "The audience that tokens of consumers must have.")
	fs.StringSliceVar(&o.Readers, "artifact-readers", []string{"system:serviceaccount:satchel-system:bundle-deployment-controller"},
		"The users who may read the artifacts of every namespace; any other ServiceAccount reads those of its own.")
}

// readers authorizes readers of artifacts; nil allows every client.
func (o ServerOptions) readers(c client.Client) (server.Readers, error) {
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

// scheme is the scheme of artifact URLs.
func (o ServerOptions) scheme() (string, error) {
	switch {
	case (o.TLSCert == "") != (o.TLSKey == ""):
		return "", errors.New("--storage-tls-cert and --storage-tls-key go together: give both, or none")
	case o.TLSCert != "":
		return "https", nil
	}
	return "http", nil
}
