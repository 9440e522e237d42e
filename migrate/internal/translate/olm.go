// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/deploymentconfig"
)

// migrateSubscription makes a BundleDeployment of a Subscription and the objects that OLM created for it.
func migrateSubscription(in *input, r *reading) {
	packageName := r.spec.text("name")
	installed := r.status.text("installedCSV")
	group := in.operatorGroup(r)
	d := r.deployment(firstOf(r.Object.GetNamespace(), in.options.Namespace), group.account)
	if d.Namespace == "" {
		r.refuse(ruleMissing, "it is in no namespace", "add --namespace")
	}
	d.Spec.Format = v1alpha1.FormatRegistryV1
	image := in.operatorImage(r, installed)
	options := registry(d)
	options.WatchNamespaces = group.targets
	options.OperatorConditions = true
	if config := r.spec.sub("config"); len(config.left) > 0 {
		options.DeploymentConfig = r.deploymentConfig(config)
	}
	r.keepPods(options, group, in.version(r, installed))
	c := r.subscribed(packageName, r.spec.text("channel"), r.spec.text("source"))
	c.Installed = in.installedVersion(r, installed)
	r.start(&c, installed, r.spec.text("startingCSV"))
	r.install(d, c, installed, image)
	r.catalogSource()
	if r.needsApproval() {
		d.Spec.Approval = &v1alpha1.ApprovalOptions{Mode: v1alpha1.ApprovalManual}
	}
	r.finish(d)
}

// installedVersion is the bundle that is installed, with the version of its ClusterServiceVersion; nil if it is not known.
func (in *input) installedVersion(r *reading, name string) *v1alpha1.CatalogInstalled {
	version := ""
	if csv := in.version(r, name); csv != nil {
		version, _, _ = unstructured.NestedString(csv.Object.Object, "spec", "version")
	}
	return installedBundle(name, version)
}

// catalogSource notes where the CatalogSource is.
func (r *reading) catalogSource() {
	if namespace := r.spec.text("sourceNamespace"); namespace != "" && namespace != r.Object.GetNamespace() {
		r.note("its CatalogSource is in the namespace %s: spec.catalog finds a BundleCatalog there only if the flag --shared-catalog-namespace names it", quoted(namespace))
	}
}

// needsApproval tells whether upgrades need approval.
func (r *reading) needsApproval() bool {
	switch approval := r.spec.text("installPlanApproval"); approval {
	case "", "Automatic":
	case "Manual":
		r.note("installPlanApproval: Manual becomes spec.approval: each plan waits for a BundleApproval, also the one that adopts the installed objects")
		return true
	default:
		r.note("spec.installPlanApproval %s is unknown, and has no effect", quoted(approval))
	}
	return false
}

// group is the content of an OperatorGroup.
type group struct {
	name    string
	targets []string // empty: all namespaces
	account string
}

// operatorGroup finds the one of the Subscription's namespace.
func (in *input) operatorGroup(r *reading) group {
	var found []manifest.Manifest
	for _, m := range in.groups {
		if sameNamespace(m, r.Manifest) {
			found = append(found, m)
		}
	}
	switch len(found) {
	case 0:
		r.note("without the OperatorGroup of its namespace it is unknown which namespaces the operator watches: all namespaces are assumed, " +
			"or the only choice that the bundle leaves; set spec.registryV1.watchNamespaces otherwise")
		return group{}
	case 1:
		return r.readGroup(found[0])
	}
	r.refuse(ruleSource, fmt.Sprintf("there are %d OperatorGroups in its namespace, with which OLM installs nothing", len(found)), "leave the wrong ones out")
	return group{}
}

func (r *reading) readGroup(m manifest.Manifest) group {
	object := m.Object.DeepCopy().Object
	beside := &reading{Manifest: m, in: r.in}
	spec, status := fieldsOf(beside, object, "spec"), fieldsOf(beside, object, "status")
	g := group{name: m.Object.GetName(), account: spec.text("serviceAccountName"), targets: spec.texts("targetNamespaces")}
	if len(spec.sub("selector").left) > 0 {
		g.targets = status.texts("namespaces")
		if len(g.targets) == 0 {
			r.refuse(ruleMissing, fmt.Sprintf("the OperatorGroup %s chooses namespaces by their labels, and does not say which those are", g.name),
				"read it from the cluster, with its status")
		} else {
			r.note("the OperatorGroup selects namespaces by labels, which has no counterpart: the namespaces that it selects now are listed")
		}
	}
	delete(spec.left, "selector")
	g.targets = slices.DeleteFunc(g.targets, func(namespace string) bool { return namespace == "" })
	spec.flag("staticProvidedAPIs")
	if upgrade := spec.text("upgradeStrategy"); upgrade != "" && upgrade != "Default" {
		r.note("upgradeStrategy %s of the OperatorGroup has no counterpart: CRDs are upgraded where that is safe (spec.apply.crds.upgradeSafety)", quoted(upgrade))
	}
	spec.rest()
	for _, note := range beside.notes {
		r.note("OperatorGroup %s: %s", g.name, note)
	}
	r.problems = append(r.problems, beside.problems...)
	return g
}

// operatorImage finds the image of the bundle: OLM writes it into the InstallPlan. It is empty if that is not there: catalogs
// name it, too.
func (in *input) operatorImage(r *reading, installed string) string {
	if installed == "" || in.image(r.Manifest) != "" {
		return ""
	}
	for _, m := range in.plans {
		if !sameNamespace(m, r.Manifest) {
			continue
		}
		beside := &reading{Manifest: m, in: in}
		for _, lookup := range fieldsOf(beside, m.Object.DeepCopy().Object, "status").list("bundleLookups") {
			if image := lookup.text("path"); lookup.text("identifier") == installed && image != "" {
				r.note("the image is that of %s, which is installed, from the InstallPlan %s", installed, m.Object.GetName())
				return image
			}
		}
	}
	return ""
}

// version is the ClusterServiceVersion that is installed; nil where it is not there.
func (in *input) version(r *reading, name string) *manifest.Manifest {
	for i, m := range in.versions {
		if m.Object.GetName() == name && sameNamespace(m, r.Manifest) {
			return &in.versions[i]
		}
	}
	return nil
}

// keptAnnotations are what OLM itself adds to a ClusterServiceVersion, and thereby to Pods.
var keptAnnotations = []string{"operatorframework.io/properties"}

// keepPods adds the annotations and variables that OLM adds to the Pods of an operator, so that they do not restart.
func (r *reading) keepPods(options *v1alpha1.RegistryV1Options, g group, version *manifest.Manifest) {
	annotations := map[string]string{}
	if g.name != "" {
		annotations["olm.operatorGroup"] = g.name
	}
	if version != nil {
		for _, key := range keptAnnotations {
			if value, found := version.Object.GetAnnotations()[key]; found {
				annotations[key] = value
			}
		}
		r.checkVersion(*version)
	} else {
		r.note("without its ClusterServiceVersion it is unknown which annotations OLM set on the Pods: kubectl satchel-migrate adopt --dry-run shows whether they would restart")
	}
	if len(annotations) == 0 {
		return
	}
	var config deploymentconfig.Config
	if options.DeploymentConfig != nil {
		_ = json.Unmarshal(options.DeploymentConfig.Raw, &config) // deploymentConfig wrote it
	}
	if config.Annotations == nil {
		config.Annotations = map[string]string{}
	}
	for key, value := range annotations {
		config.Annotations[key] = value
	}
	options.DeploymentConfig = encoded(config)
	r.note("operatorConditions and the annotations of deploymentConfig are as OLM set them, so that no Pod restarts; remove them with the next upgrade")
}

// checkVersion notes the parts of a ClusterServiceVersion that Satchel refuses or does not support.
func (r *reading) checkVersion(version manifest.Manifest) {
	beside := &reading{Manifest: version, in: r.in}
	spec := fieldsOf(beside, version.Object.DeepCopy().Object, "spec")
	if len(spec.sub("apiservicedefinitions").list("owned")) > 0 {
		r.note("the bundle serves APIs by an APIService of its own, which Satchel refuses; it can stay with OLM only")
	}
	if spec.sub("cleanup").flag("enabled") {
		r.note("spec.cleanup of the ClusterServiceVersion has no counterpart: a deletion waits for custom resources of the bundle, and deletes no others")
	}
	if len(spec.list("webhookdefinitions")) > 0 {
		r.note("the bundle has webhooks: Satchel issues new certificates for them (self-signed), and their configurations, which OLM named with a " +
			"random suffix, have to be deleted once Satchel's exist: kubectl satchel-migrate adopt --delete-leftovers does that")
	}
}

// deploymentConfig reads what adjusts the Deployments of an operator: the config of a Subscription, or of a ClusterExtension.
func (r *reading) deploymentConfig(config fields) *apiextensionsv1.JSON {
	var made deploymentconfig.Config
	if config.has("selector") {
		r.note("%s has no counterpart, and OLM does not use it either", config.at("selector"))
	}
	delete(config.left, "selector")
	for key, into := range map[string]any{
		"env": &made.Env, "envFrom": &made.EnvFrom, "volumes": &made.Volumes, "volumeMounts": &made.VolumeMounts,
		"tolerations": &made.Tolerations, "resources": &made.Resources, "nodeSelector": &made.NodeSelector,
		"affinity": &made.Affinity, "annotations": &made.Annotations,
	} {
		config.decode(key, into)
	}
	return encoded(made)
}

// encoded is a config in JSON; it consists of types that can always be encoded.
func encoded(config deploymentconfig.Config) *apiextensionsv1.JSON {
	data, _ := json.Marshal(config)
	return &apiextensionsv1.JSON{Raw: data}
}

// imageIn finds the reference of an image that has a digest in a text.
func imageIn(text string) string {
	for word := range strings.FieldsSeq(text) {
		if word = strings.Trim(word, `"'(),;`); strings.Contains(word, "@sha256:") {
			return word
		}
	}
	return ""
}
