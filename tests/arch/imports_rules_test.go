// SPDX-License-Identifier: Apache-2.0

package arch

// importRule forbids imports. A pattern that starts with ./ is a package of this module, any other is an
// import path; /... at the end includes everything below.
type importRule struct {
	name   string
	why    string
	remedy string
	from   []string // the rule is about these packages
	except []string // but not about these
	not    []string // which must not import any of these
	but    []string // save these
}

// Groups of packages that rules name.
var (
	pure = []string{
		"./internal/convert/...", "./internal/apply/plan/...", "./internal/apply/inventory/...", "./internal/apply/rights/...", "./internal/apply/crds/...",
		"./internal/apply/certificate/...", "./migrate/internal/translate/...", "./internal/install/...", "./internal/resolver/...", "./internal/catalog/...", "./internal/rollout/...",
		"./internal/endpoint/...", "./internal/imagepolicy/...",
	}
	kubernetesClients = []string{
		"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/...", "k8s.io/cli-runtime/...",
		"github.com/fluxcd/pkg/runtime/...",
	}
	upstreamLibraries = []string{
		"github.com/google/go-containerregistry/...", "github.com/go-git/...", "oras.land/...",
		"github.com/sigstore/...", "github.com/notaryproject/...", "github.com/fluxcd/pkg/git/...",
		"github.com/fluxcd/pkg/oci/...", "github.com/docker/...", "github.com/distribution/...",
		"github.com/ProtonMail/...",
	}
	deploymentStages = []string{
		"./internal/controller/deployment/catalogs/...", "./internal/controller/deployment/resolve/...", "./internal/controller/deployment/render/...",
		"./internal/controller/deployment/decide/...",
		"./internal/controller/deployment/deliver/...", "./internal/controller/deployment/settle/...",
	}
	plugin    = []string{"./migrate/internal/...", "./migrate/cmd/...", "./migrate/build/..."}
	composers = []string{
		"./internal/controller/...", "./internal/cli/...", "./internal/manager/...", "./cmd/...",
	}
)

// importRules are docs/architecture.md, and the decisions 2, 6 and 13 of docs/dev/design.md.
var importRules = []importRule{{
	name:   "fetch, convert and apply do not import each other",
	why:    "they meet only in fs.FS, unstructured objects and meta.Artifact, so that each can be tested and replaced alone",
	remedy: "pass values of those types through the controller or the CLI",
	from:   []string{"./internal/fetch/..."},
	not:    []string{"./internal/convert/...", "./internal/apply/...", "./internal/artifact/..."},
}, {
	name:   "fetch, convert and apply do not import each other",
	why:    "they meet only in fs.FS, unstructured objects and meta.Artifact, so that each can be tested and replaced alone",
	remedy: "pass values of those types through the controller or the CLI",
	from:   []string{"./internal/convert/..."},
	not:    []string{"./internal/fetch/...", "./internal/apply/...", "./internal/artifact/..."},
}, {
	name:   "fetch, convert and apply do not import each other",
	why:    "they meet only in fs.FS, unstructured objects and meta.Artifact, so that each can be tested and replaced alone",
	remedy: "pass values of those types through the controller or the CLI",
	from:   []string{"./internal/apply/..."},
	not:    []string{"./internal/fetch/...", "./internal/convert/...", "./internal/artifact/..."},
}, {
	name:   "artifacts have no origin",
	why:    "where a bundle came from is a matter of fetch, what it means one of convert and apply",
	remedy: "pass a tree of files, or a meta.Artifact",
	from:   []string{"./internal/artifact/..."},
	not:    []string{"./internal/convert/...", "./internal/apply/..."},
}, {
	name:   "upstreams know no content",
	why:    "the source controller and the CLI fetch with them; what a bundle means is a matter of convert",
	remedy: "convert in the caller",
	from:   []string{"./internal/sourcefetch/..."},
	not:    []string{"./internal/convert/...", "./internal/apply/..."},
}, {
	name:   "only controllers and the CLI compose",
	why:    "a library that knows its callers cannot be used by another one",
	remedy: "turn the dependency round: let the caller pass a value or a function",
	from:   []string{"./internal/...", "./api/..."},
	except: composers,
	not:    composers,
}, {
	name:   "the API imports nothing of Satchel",
	why:    "others import the API; it must not drag the implementation along",
	remedy: "move the code that needs it into internal/",
	from:   []string{"./api/..."},
	not:    append([]string{"./internal/...", "./tests/...", "./cmd/..."}, kubernetesClients...),
}, {
	name:   "the CLI is no controller",
	why:    "the CLI makes one library call a command; controllers carry queues, caches and metrics",
	remedy: "move what both need into fetch, convert or apply",
	from:   append([]string{"./internal/cli/...", "./cmd/satchel/..."}, plugin...),
	not:    []string{"./internal/controller/...", "./internal/manager/..."},
}, {
	name:   "nothing imports the plugin for migrations",
	why:    "the core must build, and be understood, without it",
	remedy: "move what both need into internal/, which the plugin may import",
	from:   []string{"./api/...", "./internal/...", "./cmd/...", "./build/...", "./tests/..."},
	not:    []string{"./migrate/..."},
}, {
	name:   "what people are shown is a value, without a terminal and a cluster",
	why:    "the command line and a web UI show the same",
	remedy: "read the cluster in internal/cli/kit and print in internal/cli/printer",
	from:   []string{"./internal/view/..."},
	not:    []string{"./internal/cli/...", "./internal/controller/...", "github.com/spf13/cobra/...", "k8s.io/cli-runtime/...", "k8s.io/client-go/..."},
}, {
	name:   "a controller is no CLI",
	why:    "a controller has no terminal to print output for people to",
	remedy: "move what both need into fetch, convert or apply",
	from:   []string{"./internal/controller/...", "./internal/manager/...", "./cmd/bundle-source-controller/...", "./cmd/bundle-deployment-controller/...", "./cmd/bundle-rollout-controller/..."},
	not:    []string{"./internal/cli/...", "github.com/spf13/cobra/...", "k8s.io/cli-runtime/..."},
}, {
	name:   "the two controllers do not import each other",
	why:    "they are two processes with different permissions, and meet only in the API and the artifact server",
	remedy: "move what both need below internal/controller/ but outside of both",
	from:   []string{"./internal/controller/source/...", "./internal/controller/catalog/...", "./internal/controller/upstream/..."},
	not:    []string{"./internal/controller/deployment/...", "./internal/convert/...", "./internal/apply/..."},
}, {
	name:   "the controllers of sources and of catalogs do not import each other",
	why:    "both fetch from upstreams, and neither is a part of the other",
	remedy: "move what both need to internal/controller/upstream",
	from:   []string{"./internal/controller/catalog/...", "./internal/controller/upstream/..."},
	not:    []string{"./internal/controller/source/..."},
}, {
	name:   "the controllers of sources and of catalogs do not import each other",
	why:    "both fetch from upstreams, and neither is a part of the other",
	remedy: "move what both need to internal/controller/upstream",
	from:   []string{"./internal/controller/source/...", "./internal/controller/upstream/..."},
	except: []string{"./internal/controller/source/process"}, // which composes the process of both
	not:    []string{"./internal/controller/catalog/..."},
}, {
	name:   "the two controllers do not import each other",
	why:    "they are two processes with different permissions, and meet only in the API and the artifact server",
	remedy: "move what both need below internal/controller/ but outside of both; load artifacts through internal/artifact/loader",
	from:   []string{"./internal/controller/deployment/..."},
	not: []string{
		"./internal/controller/source/...", "./internal/controller/catalog/...", "./internal/controller/upstream/...", "./internal/sourcefetch/...", "./internal/fetch/image/...", "./internal/fetch/git/...",
		"./internal/fetch/http/...", "./internal/fetch/helm/...", "./internal/fetch/configmap/...", "./internal/fetch/verify/...",
		"./internal/artifact/storage/...", "./internal/artifact/catalogs/...", "./internal/artifact/server/...", "./internal/artifact/upload/...",
	},
}, {
	name:   "the rollout controller writes BundleDeployments, and knows no other controller",
	why:    "it is optional, and has permissions of its own; what a bundle is, and how it is applied, is a matter of the other two",
	remedy: "move what both need below internal/controller/ but outside of both, or decide in internal/rollout, which is pure",
	from:   []string{"./internal/controller/rollout/..."},
	not:    []string{"./internal/controller/source/...", "./internal/controller/deployment/...", "./internal/fetch/...", "./internal/convert/...", "./internal/sourcefetch/..."},
}, {
	name:   "the other controllers know no rollout",
	why:    "rollouts are optional: a BundleDeployment of a rollout is one like any other",
	remedy: "move the code to internal/controller/rollout",
	from:   []string{"./internal/controller/source/...", "./internal/controller/deployment/..."},
	not:    []string{"./internal/controller/rollout/...", "./internal/rollout/..."},
}, {
	name:   "stages of the deployment controller do not import each other",
	why:    "what one stage knows of another is its result, which the reconcile hands over",
	remedy: "let the reconcile pass a value, or move what both need to a package below internal/controller/deployment that is no stage",
	from:   deploymentStages,
	not:    append([]string{"./internal/controller/deployment"}, deploymentStages...),
}, {
	name:   "what stages of the deployment controller share knows no stage",
	why:    "otherwise a stage would import another one by a detour",
	remedy: "let the stage pass a value, or move the type to internal/controller/deployment/stage",
	from: []string{
		"./internal/controller/deployment/stage/...", "./internal/controller/deployment/hooks/...", "./internal/controller/deployment/approval/...",
		"./internal/controller/deployment/certificates/...", "./internal/controller/deployment/snapshot/...", "./internal/controller/deployment/dependency/...",
		"./internal/controller/deployment/waiting/...", "./internal/controller/deployment/scrub/...", "./internal/controller/deployment/figures/...",
		"./internal/controller/deployment/failure/...",
	},
	not: append([]string{"./internal/controller/deployment"}, deploymentStages...),
}, {
	name:   "the pipeline is generic",
	why:    "all controllers use it, with kinds and states of their own",
	remedy: "pass the state as a type parameter, and what depends on a kind as a value or a function",
	from:   []string{"./internal/controller/pipeline/..."},
	not:    []string{"./internal/...", "./api/..."},
	but:    []string{"./internal/controller/pipeline/...", "./internal/visible/..."},
}, {
	name:   "pure packages are pure",
	why:    "what is previewed has to be what is executed: no network, cluster, environment or file outside the bundle",
	remedy: "let the caller observe, and pass what it saw as a value",
	from:   pure,
	not: append([]string{
		"net", "net/http/...", "os/...", "syscall", "math/rand/...", "crypto/rand", "path/filepath",
		"./internal/...", "./tests/...",
	}, kubernetesClients...),
	but: append([]string{"./internal/convert/...", "./internal/format", "./internal/pattern/...", "./internal/plural/...", "./internal/endpoint/...", "./internal/imagepolicy/..."}, "./internal/apply/crds/...", "./internal/apply/inventory/...", "./internal/apply/plan/...", "./internal/apply/rights/...", "./internal/catalog/...", "./internal/resolver", "./internal/rollout/...", "./internal/spec/effective"),
}, {
	name:   "decisions about rollouts import only the API",
	why:    "the controller records what they say before it acts, and the CLI previews it: equal facts have to give equal decisions",
	remedy: "let the caller observe, and pass what it saw as a value",
	from:   []string{"./internal/rollout/..."},
	not:    []string{"./internal/..."},
	but:    []string{"./internal/rollout/...", "./internal/format", "./internal/spec/effective", "./internal/convert/registryv1/shape"},
}, {
	name:   "resolution has no clock, and reads no files",
	why:    "equal catalogs and an equal query give the same bundle at any time, in the controller and in the CLI",
	remedy: "let the caller read the catalog, and pass internal/catalog.Package",
	from:   []string{"./internal/resolver/..."},
	not:    []string{"time", "io/fs", "./internal/..."},
	but:    []string{"./internal/catalog", "./internal/resolver"},
}, {
	name:   "adapters get credentials, not clients",
	why:    "a fetcher that can read the cluster could read another tenant's Secret",
	remedy: "resolve credentials and ConfigMaps in the source controller and pass them in the adapter's options",
	from:   []string{"./internal/fetch/...", "./internal/artifact/..."},
	not:    kubernetesClients,
}, {
	name:   "the vocabulary of fetch is free of registries and Git",
	why:    "the deployment controller imports fetch and artifact, and must not link that code",
	remedy: "put the code into the adapter's package, internal/fetch/image or internal/fetch/git",
	from:   []string{"./internal/fetch", "./internal/fetch/guard/...", "./internal/artifact/..."},
	not:    append([]string{"./internal/fetch/image/...", "./internal/fetch/git/...", "./internal/fetch/verify/..."}, upstreamLibraries...),
}, {
	name:   "no subprocess",
	why:    "argument injection; a static image has no other program anyway",
	remedy: "use a library; what may cost much is a job of internal/worker, which starts this binary and nothing else",
	from:   []string{"./internal/...", "./cmd/bundle-source-controller/...", "./cmd/bundle-deployment-controller/...", "./cmd/bundle-rollout-controller/...", "./migrate/internal/...", "./migrate/cmd/..."},
	not:    []string{"os/exec"},
}, {
	name:   "the product does not import its tests",
	why:    "test helpers have neither limits nor care",
	remedy: "move what the product needs into internal/",
	from:   append([]string{"./api/...", "./internal/...", "./cmd/..."}, plugin...),
	not:    []string{"./tests/...", "testing/...", "net/http/httptest"},
}, {
	name:   "tenants' clients come from one place",
	why:    "one code path without impersonation is enough to lose the tenant boundary",
	remedy: "take a client from internal/apply/tenant",
	from:   []string{"./internal/apply/..."},
	except: []string{"./internal/apply/tenant/...", "./internal/apply/fieldmanager/schemas"}, // the list of kinds is no client
	not:    []string{"k8s.io/client-go/kubernetes/...", "k8s.io/client-go/dynamic/...", "k8s.io/client-go/metadata/...", "k8s.io/client-go/rest/...", "sigs.k8s.io/controller-runtime/pkg/client/..."},
}}

// linkRule forbids packages in a binary, however they get there.
type linkRule struct {
	name   string
	why    string
	remedy string
	into   []string
	not    []string
	behind []string // importers that may bring it along, if no other does
}

// linkRules are the libraries of docs/dev/design.md.
var linkRules = []linkRule{{
	name:   "the deployment controller has no upstream code",
	why:    "it acts with tenants' permissions; parsers of registries, Git and signatures do not belong next to those",
	remedy: "find the import with `go mod why -m` and move it behind the source controller",
	into:   []string{"./cmd/bundle-deployment-controller", "./cmd/bundle-rollout-controller"},
	not: append([]string{
		"helm.sh/helm/v4/pkg/action/...", "github.com/fluxcd/pkg/artifact/storage/...",
	}, upstreamLibraries...),
}, {
	name:   "no credential helpers of others",
	why:    "unmaintained code that handles cloud credentials",
	remedy: "use the login of the cloud's own library",
	into:   []string{"./cmd/...", "./migrate/cmd/..."},
	not:    []string{"github.com/chrismellard/docker-credential-acr-env/..."},
}, {
	name:   "no test code in a binary",
	why:    "the testing package registers flags, and test helpers have no limits",
	remedy: "find who imports it with `go list -deps -json`",
	// net/http/httptest is not listed: Flux's runtime/conditions links it through gomega's matchers.
	into: []string{"./cmd/bundle-source-controller", "./cmd/bundle-deployment-controller", "./cmd/bundle-rollout-controller"},
	not:  []string{"testing", "./tests/..."},
	// Sigstore's timestamps need this package, which has a test in a file with a name that go does not take for one.
	// Helm asks testing.Testing() which versions to tell; that registers no flag.
	behind: []string{"github.com/digitorus/pkcs7", "helm.sh/helm/v4/pkg/chart/common", "helm.sh/helm/v4/internal/version"},
}, {
	name:   "no test code of ours in the CLI",
	why:    "test helpers have no limits; the testing package is there, unused, as operator-framework/api's validation keeps a helper of its tests outside of _test.go",
	remedy: "find who imports it with `go list -deps -json`",
	into:   []string{"./cmd/satchel", "./migrate/cmd/..."},
	not:    []string{"./tests/..."},
}, {
	name:   "the suites of operator-framework/api are the CLI's",
	why:    "they bring a test library and a validator that starts docker; only the command that validates bundles needs them",
	remedy: "use internal/convert, which has validators of its own",
	into:   []string{"./cmd/bundle-source-controller", "./cmd/bundle-deployment-controller", "./cmd/bundle-rollout-controller"},
	not:    []string{"./internal/lint/...", "github.com/operator-framework/api/pkg/validation/..."},
}}

// dependencyFloors are the oldest versions without a known vulnerability, of modules that are in go.mod:
// docs/dev/design.md.
var dependencyFloors = map[string]string{
	"github.com/go-git/go-git/v5":             "v5.19.2",
	"github.com/go-git/go-billy/v5":           "v5.9.0",
	"github.com/google/go-containerregistry":  "v0.21.6",
	"oras.land/oras-go/v2":                    "v2.6.2",
	"github.com/sigstore/sigstore-go":         "v1.2.1",
	"github.com/sigstore/cosign/v3":           "v3.0.6",
	"github.com/sigstore/sigstore":            "v1.10.4",
	"github.com/sigstore/rekor":               "v1.5.2",
	"github.com/theupdateframework/go-tuf/v2": "v2.4.1",
	"github.com/notaryproject/notation-go":    "v1.3.2",
	"github.com/google/cel-go":                "v0.30.0",
	"github.com/klauspost/compress":           "v1.18.7",
	"golang.org/x/crypto":                     "v0.52.0",
	"golang.org/x/net":                        "v0.56.0",
}
