// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// DefaultCatalogNamespace is the namespace of what cluster-scoped catalogs and mirrors become, if the user names none.
const DefaultCatalogNamespace = "satchel-catalogs"

// notFileBased says why a CatalogSource is not translated; empty if it names the image of a catalog.
func notFileBased(source *unstructured.Unstructured) string {
	image, _, _ := unstructured.NestedString(source.Object, "spec", "image")
	kind, _, _ := unstructured.NestedString(source.Object, "spec", "sourceType")
	address, _, _ := unstructured.NestedString(source.Object, "spec", "address")
	configMap, _, _ := unstructured.NestedString(source.Object, "spec", "configMap")
	switch {
	case image != "":
		return ""
	case kind == "internal" || kind == "configmap" || configMap != "":
		return "it reads the ConfigMap " + quoted(configMap) + ", which holds no file-based catalog: render its packages into an image with opm " +
			"(opm render, opm generate dockerfile), and write a BundleCatalog that names the image"
	case address != "":
		return "it names the address of a server, " + quoted(address) + ", and a BundleCatalog an image: give the image that runs there to a CatalogSource as spec.image, " +
			"or render its packages into an image with opm, and write a BundleCatalog that names it"
	}
	return "it names no image (spec.image)"
}

// migrateCatalogSource makes a BundleCatalog of a CatalogSource, in the same namespace.
func migrateCatalogSource(in *input, r *reading) {
	namespace := cmp.Or(r.Object.GetNamespace(), in.options.Namespace)
	if namespace == "" {
		r.refuse(ruleMissing, "it is in no namespace", "add --namespace")
	}
	image := &v1alpha1.ImageSource{Reference: r.spec.text("image")}
	c := r.bundleCatalog(namespace, image)
	r.spec.text("sourceType") // notFileBased judged it
	secrets := r.spec.texts("secrets")
	if len(secrets) > 0 {
		image.SecretRef = &v1alpha1.LocalReference{Name: secrets[0]}
		r.note("the Secret %s fetches the catalog only: spec.catalog.image.secretRef of a BundleDeployment is that for its bundle", quoted(secrets[0]))
	}
	if len(secrets) > 1 {
		r.note("an image has one Secret: spec.secrets %s are not translated; put all logins into one", quoted(strings.Join(secrets[1:], ", ")))
	}
	poll := r.spec.sub("updateStrategy").sub("registryPoll")
	r.poll(c, poll.at("interval"), poll.text("interval"))
	r.noCounterpart(r.spec, "no Pod runs for a catalog", "grpcPodConfig", "runAsRoot", "address", "configMap")
	r.noCounterpart(r.spec, "", "displayName", "publisher", "description", "icon")
	if template := r.Object.GetAnnotations()["olm.catalogImageTemplate"]; template != "" {
		r.note("the annotation olm.catalogImageTemplate %s has no counterpart: change the image when you upgrade the cluster", quoted(template))
	}
	r.note("other namespaces see it only if the flag --shared-catalog-namespace of both controllers is %s", quoted(namespace))
	r.made = append(r.made, c)
}

// migrateClusterCatalog makes a BundleCatalog of a ClusterCatalog.
func migrateClusterCatalog(_ *input, r *reading) {
	source := r.spec.sub("source")
	if kind := source.text("type"); kind != "" && kind != "Image" {
		r.refuse(ruleSource, fmt.Sprintf("the source type %s is not known; known is Image", quoted(kind)), "leave it out")
	}
	image := source.sub("image")
	c := r.bundleCatalog(r.sharedNamespace(), &v1alpha1.ImageSource{Reference: image.text("ref")})
	every := ""
	if minutes, found := image.number("pollIntervalMinutes"); found {
		every = fmt.Sprintf("%dm", minutes)
	}
	r.poll(c, image.at("pollIntervalMinutes"), every)
	switch mode := r.spec.text("availabilityMode"); mode {
	case "", "Available":
	case "Unavailable":
		c.Spec.Suspend = true
		r.note("availabilityMode: Unavailable becomes spec.suspend: it is not fetched, and a BundleDeployment that names it waits")
	default:
		r.note("spec.availabilityMode %s is unknown, and has no effect", quoted(mode))
	}
	r.made = append(r.made, c)
}

// sharedNamespace is where cluster-scoped objects are translated to.
func (r *reading) sharedNamespace() string {
	namespace := r.in.catalogNamespace()
	r.note("it is cluster-scoped, and its counterpart counts for other namespaces only if the flag --shared-catalog-namespace of the controllers is %s; "+
		"--catalog-namespace chooses another one", quoted(namespace))
	return namespace
}

// catalogNamespace is the namespace of what is made of cluster-scoped catalogs and mirrors.
func (in *input) catalogNamespace() string {
	return cmp.Or(in.options.CatalogNamespace, in.options.Namespace, DefaultCatalogNamespace)
}

// bundleCatalog begins a BundleCatalog of an image.
func (r *reading) bundleCatalog(namespace string, image *v1alpha1.ImageSource) *v1alpha1.BundleCatalog {
	if image.Reference == "" {
		r.refuse(ruleMissing, "it names no image", "add it")
	}
	c := &v1alpha1.BundleCatalog{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.BundleCatalogKind},
		ObjectMeta: r.metadata(namespace),
		Spec:       v1alpha1.BundleCatalogSpec{Source: v1alpha1.CatalogSource{Image: image}},
	}
	if priority, found := r.spec.number("priority"); found {
		if priority < math.MinInt32 || priority > math.MaxInt32 {
			r.refuse(ruleValue, fmt.Sprintf("spec.priority is %d, and does not fit into 32 bits", priority), "correct it")
		}
		c.Spec.Priority = int32(priority) //nolint:gosec // it is refused above if it does not fit
	}
	return c
}

// poll reads how often the tag of a catalog is resolved.
func (r *reading) poll(c *v1alpha1.BundleCatalog, field, every string) {
	fixed := strings.Contains(c.Spec.Source.Image.Reference, "@")
	if every == "" {
		if !fixed {
			r.note("without %s its tag was not polled: a BundleCatalog is, each 10 minutes; name a digest, or set spec.interval", field)
		}
		return
	}
	interval, err := time.ParseDuration(every)
	if err != nil || interval < time.Second || interval > 8760*time.Hour {
		r.refuse(ruleValue, fmt.Sprintf("%s is %s, not a duration between 1s and 8760h", field, quoted(every)), "correct it")
		return
	}
	c.Spec.Interval = v1alpha1.Duration{Duration: interval}
}

// noCounterpart notes fields that are known, and not translated.
func (r *reading) noCounterpart(f fields, why string, keys ...string) {
	var found []string
	for _, key := range keys {
		if value, there := f.take(key); there {
			found = append(found, leaves(f.at(key), value)...)
		}
	}
	if len(found) == 0 {
		return
	}
	if why != "" {
		why = ": " + why
	}
	verb := "have"
	if len(found) == 1 {
		verb = "has"
	}
	r.note("%s %s no counterpart%s", strings.Join(found, ", "), verb, why)
}
