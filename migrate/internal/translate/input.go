// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// Options are what the manifests do not say.
type Options struct {
	// Images are the images of bundles, by the names of what is migrated (NAME or NAMESPACE/NAME). They take precedence
	// over the manifests.
	Images map[string]string
	// Namespace is that of objects that name none; empty: that in which the bundle is installed.
	Namespace string
	// CatalogNamespace is that of what is made of cluster-scoped catalogs and mirrors; empty: Namespace, or
	// DefaultCatalogNamespace.
	CatalogNamespace string
	// InstallNamespace is the install namespace of bundles that name none in their manifests.
	InstallNamespace string
	// ServiceAccount installs where the manifests name none.
	ServiceAccount string
}

// rules of this package, as manifest.Problem.Rule.
const (
	ruleKind    = "kind"    // not a kind that is migrated
	ruleMissing = "missing" // something that has to be said is not
	ruleValue   = manifest.RuleValue
	ruleSource  = "source" // a source without counterpart
	ruleName    = "name"   // a name that cannot be used
)

// groups of the kinds that are migrated.
const (
	rukpakGroup = "core.rukpak.io"
	olmGroup    = "operators.coreos.com"
	olmV1Group  = "olm.operatorframework.io"
	configGroup = "config.openshift.io"
	contentKind = "operator.openshift.io/ImageContentSourcePolicy"
)

// input are the manifests that were read, by their role.
type input struct {
	options Options

	items     []manifest.Manifest // what is migrated, in the order of the files
	bundles   []manifest.Manifest // RukPak's, made by a BundleDeployment
	groups    []manifest.Manifest // OperatorGroups
	plans     []manifest.Manifest // InstallPlans
	versions  []manifest.Manifest // ClusterServiceVersions
	revisions []manifest.Manifest // of ClusterExtensions

	idle     []Idle
	problems []manifest.Problem
}

// kindOf is the group and kind of an object, such as core.rukpak.io/Bundle.
func kindOf(o *unstructured.Unstructured) string {
	return o.GroupVersionKind().Group + "/" + o.GetKind()
}

// migrators translate the kinds that are migrated.
var migrators = map[string]func(*input, *reading){
	rukpakGroup + "/BundleDeployment": migrateRukPakDeployment,
	rukpakGroup + "/Bundle":           migrateRukPakBundle,
	olmGroup + "/Subscription":        migrateSubscription,
	olmGroup + "/CatalogSource":       migrateCatalogSource,
	olmV1Group + "/ClusterExtension":  migrateExtension,
	olmV1Group + "/ClusterCatalog":    migrateClusterCatalog,

	configGroup + "/ImageDigestMirrorSet": migrateDigestMirrors,
	configGroup + "/ImageTagMirrorSet":    migrateTagMirrors,
	contentKind:                           migrateContentPolicy,
}

// withBundle are the kinds that --image is about.
var withBundle = []string{
	rukpakGroup + "/BundleDeployment", rukpakGroup + "/Bundle", olmGroup + "/Subscription", olmV1Group + "/ClusterExtension",
}

// knownVersions are the supported API versions, by kind; of kinds that are only read for data, any version is supported.
var knownVersions = map[string][]string{
	rukpakGroup + "/BundleDeployment": {"v1alpha1", "v1alpha2"},
	rukpakGroup + "/Bundle":           {"v1alpha1"},
	olmGroup + "/Subscription":        {"v1alpha1"},
	olmGroup + "/CatalogSource":       {"v1alpha1"},
	olmV1Group + "/ClusterExtension":  {"v1", "v1alpha1"},
	olmV1Group + "/ClusterCatalog":    {"v1"},

	configGroup + "/ImageDigestMirrorSet": {"v1"},
	configGroup + "/ImageTagMirrorSet":    {"v1"},
	contentKind:                           {"v1alpha1"},
}

// without says why kinds are not translated that only accompany the migrated ones.
var without = map[string]string{
	olmGroup + "/OperatorCondition": "Satchel keeps no OperatorConditions: an operator that says it cannot be upgraded now is upgraded all the same",
	olmGroup + "/Operator":          "it only lists what an operator consists of; satchel status and satchel tree do that",
	olmGroup + "/OLMConfig":         "it configures the Operator Lifecycle Manager itself",
	"v1/Namespace":                  "the rbac command prints the namespaces",
}

// sort puts a manifest where it is looked for.
func (in *input) sort(m manifest.Manifest) {
	kind := kindOf(m.Object)
	if m.Object.GroupVersionKind().Group == "" {
		kind = m.Object.GetAPIVersion() + "/" + m.Object.GetKind()
	}
	switch kind {
	case olmGroup + "/OperatorGroup":
		in.groups = append(in.groups, m)
	case olmGroup + "/InstallPlan":
		in.plans = append(in.plans, m)
	case olmGroup + "/ClusterServiceVersion":
		in.addVersion(m)
	case olmV1Group + "/ClusterExtensionRevision", olmV1Group + "/ClusterObjectSet":
		in.revisions = append(in.revisions, m)
	case olmGroup + "/CatalogSource":
		if why := notFileBased(m.Object); why != "" {
			in.idle = append(in.idle, Idle{From: place(m), Why: why})
			return
		}
		in.addItem(kind, m)
	default:
		if why, known := without[kind]; known {
			in.idle = append(in.idle, Idle{From: place(m), Why: why})
			return
		}
		in.addItem(kind, m)
	}
}

// addVersion leaves out the copies that OLM puts into watched namespaces.
func (in *input) addVersion(m manifest.Manifest) {
	if _, copied := m.Object.GetLabels()["olm.copiedFrom"]; !copied {
		in.versions = append(in.versions, m)
	}
}

func (in *input) addItem(kind string, m manifest.Manifest) {
	versions, known := knownVersions[kind]
	version := m.Object.GroupVersionKind().Version
	switch {
	case !known:
		in.problems = append(in.problems, m.Problem(ruleKind,
			fmt.Sprintf("%s %s is not migrated", quoted(m.Object.GetAPIVersion()), quoted(m.Object.GetKind())),
			"leave it out; known are BundleDeployment and Bundle of RukPak, Subscription (with its OperatorGroup, InstallPlan and "+
				"ClusterServiceVersion) and CatalogSource of OLM, ClusterExtension and ClusterCatalog of OLM v1, and ImageDigestMirrorSet, ImageTagMirrorSet and "+
				"ImageContentSourcePolicy of OpenShift"))
	case !contains(versions, version):
		in.problems = append(in.problems, m.Problem(ruleKind,
			fmt.Sprintf("the version %s of %s is not known", quoted(version), quoted(m.Object.GetKind())),
			"known are "+strings.Join(versions, " and ")+"; read it from the cluster in one of them"))
	case kind == rukpakGroup+"/Bundle" && m.Object.GetLabels()["core.rukpak.io/owner-kind"] == "BundleDeployment":
		in.bundles = append(in.bundles, m)
	default:
		in.items = append(in.items, m)
	}
}

// reading is one object that is migrated, and its translation.
type reading struct {
	manifest.Manifest

	in       *input
	spec     fields
	status   fields
	notes    []string
	problems []manifest.Problem
	made     []any
	rights   *RBAC
	adopts   bool

	installed *v1alpha1.CatalogInstalled
}

// note says what has no counterpart, or is worth knowing.
func (r *reading) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// refuse reports why the object cannot be migrated.
func (r *reading) refuse(rule, message, remedy string) {
	r.problems = append(r.problems, r.Problem(rule, message, remedy))
}
