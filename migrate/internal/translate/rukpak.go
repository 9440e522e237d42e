// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"encoding/json"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// classes are RukPak's provisioner classes: what a bundle was unpacked as.
var classes = map[string]v1alpha1.Format{
	"core-rukpak-io-plain":    v1alpha1.FormatPlainV0,
	"core-rukpak-io-registry": v1alpha1.FormatRegistryV1,
	"core-rukpak-io-helm":     v1alpha1.FormatHelm,
}

// manifestsFolder is where RukPak looks for the objects of a plain bundle.
const manifestsFolder = "manifests"

// migrateRukPakDeployment reads a BundleDeployment of RukPak in both of its shapes: with a template for its Bundle, and
// with the source in itself.
func migrateRukPakDeployment(in *input, r *reading) {
	what, class := r.spec, r.spec.text("provisionerClassName")
	install := r.spec.text("installNamespace")
	if r.Object.GroupVersionKind().Version == "v1alpha1" {
		template := r.spec.sub("template")
		for _, path := range leaves("spec.template.metadata", template.left["metadata"]) {
			r.note("%s was for the Bundle, which has no counterpart", path)
		}
		delete(template.left, "metadata")
		what = template.sub("spec")
		if unpacked := what.text("provisionerClassName"); unpacked != "" {
			if class != "" && class != unpacked && classes[class] == "" {
				r.note("spec.provisionerClassName %s has no counterpart", quoted(class))
			}
			class = unpacked
		}
	}
	d := r.deployment(install, "")
	d.Spec.Source = in.rukpakSource(r, what)
	r.class(class, d)
	d.Spec.Suspend = r.spec.flag("paused")
	r.config(d)
	r.crdSafety(d, r.spec.sub("preflight").sub("crdUpgradeSafety"))
	if d.Spec.Format == v1alpha1.FormatRegistryV1 {
		r.note("RukPak's converter is not Satchel's: ServiceAccounts and roles have the same names, but the Pods get the annotations of the "+
			"ClusterServiceVersion, so that the operator restarts once; %s", "kubectl satchel-migrate adopt --dry-run shows it")
	}
	r.finish(d)
}

// migrateRukPakBundle makes an immutable BundleSource of a Bundle that stands alone.
func migrateRukPakBundle(in *input, r *reading) {
	class := r.spec.text("provisionerClassName")
	source := r.source()
	if spec := in.rukpakSource(r, r.spec); spec != nil {
		source.Spec = *spec
	}
	source.Spec.Immutable = true
	switch format, known := classes[class]; {
	case known:
		r.note("set its format, %s, in the BundleDeployment that refers to it by spec.sourceRef", format)
	case class != "":
		r.note("spec.provisionerClassName %s has no counterpart", quoted(class))
	}
	r.made = append(r.made, source)
}

// class chooses the format.
func (r *reading) class(class string, d *v1alpha1.BundleDeployment) {
	format, known := classes[class]
	switch {
	case known:
		d.Spec.Format = format
	case class == "":
		r.note("no provisioner class is given: the format is detected")
	default:
		r.note("the provisioner class %s is not one of RukPak's own and has no counterpart: the format is detected", quoted(class))
	}
	if format == v1alpha1.FormatPlainV0 {
		d.Spec.Path = manifestsFolder
		r.note("RukPak applied what lies in the folder manifests, hence spec.path; the namespace of objects that name none is %s now",
			quoted(firstOf(d.Spec.Target.Namespace, d.Namespace)))
	}
	if format == v1alpha1.FormatHelm {
		r.note("the chart is rendered with the release name %s and the namespace %s; kubectl satchel-migrate adopt --dry-run shows what differs from what runs",
			quoted(d.Name), quoted(firstOf(d.Spec.Target.Namespace, d.Namespace)))
	}
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// config reads the configuration that RukPak passed to the provisioner.
func (r *reading) config(d *v1alpha1.BundleDeployment) {
	if !r.spec.has("config") {
		r.spec.sub("config")
		return
	}
	config := r.spec.sub("config")
	if d.Spec.Format == v1alpha1.FormatHelm || config.has("values") {
		r.chartValues(d, config)
	}
	if one := config.text("watchNamespace"); one != "" {
		registry(d).WatchNamespaces = []string{one}
	}
	if several := config.texts("watchNamespaces"); len(several) > 0 {
		registry(d).WatchNamespaces = several
	}
	if deployment := config.sub("deploymentConfig"); len(deployment.left) > 0 {
		registry(d).DeploymentConfig = r.deploymentConfig(deployment)
	}
	if d.Spec.RegistryV1 != nil && (d.Spec.Format == v1alpha1.FormatPlainV0 || d.Spec.Format == v1alpha1.FormatHelm) {
		d.Spec.RegistryV1 = nil
		r.note("watchNamespace, watchNamespaces and deploymentConfig in spec.config are for bundles of operators and have no effect for the format %s; they are omitted", d.Spec.Format)
	}
}

// chartValues reads the values for a chart, which RukPak takes as a string in YAML.
func (r *reading) chartValues(d *v1alpha1.BundleDeployment, config fields) {
	var found any
	switch written := config.left["values"].(type) {
	case nil:
		return
	case string:
		reader := manifest.NewReader(nil, manifest.Limits{}).Strict()
		documents, ok := reader.ValuesOf(config.at("values"), []byte(written))
		if !ok || len(documents) > 1 {
			config.take("values")
			config.wrong("values", "one document of values in YAML")
			return
		}
		if len(documents) == 1 {
			found = documents[0]
		}
	default:
		found = written
	}
	config.take("values")
	values, ok := found.(map[string]any)
	if !ok && found != nil {
		config.wrong("values", "a mapping of names to values")
		return
	}
	if len(values) == 0 {
		return
	}
	encoded, err := json.Marshal(values)
	if err != nil {
		config.wrong("values", "a mapping that JSON can hold")
		return
	}
	d.Spec.Helm = &v1alpha1.HelmOptions{Values: &apiextensionsv1.JSON{Raw: encoded}}
	r.note("put passwords and keys among the values into a Secret, and name it in spec.helm.valuesFrom")
}

// rukpakSource reads a source: the member that its type names.
func (in *input) rukpakSource(r *reading, of fields) *v1alpha1.BundleSourceSpec {
	source := of.sub("source")
	kind := source.text("type")
	if image := in.image(r.Manifest); image != "" {
		source.sub(sourceMembers[kind])
		delete(of.left, "source")
		r.note("the source is the image of --image, instead of the source of the type %s", quoted(kind))
		return pinned(image)
	}
	resolved := r.resolved(in)
	read, known := rukpakSources[kind]
	if !known {
		r.refuse(ruleSource, fmt.Sprintf("the source type %s is not known", quoted(kind)),
			"known are image, git, http, configMaps, upload and local; or add --image "+r.Object.GetName()+"=IMAGE")
		delete(of.left, "source")
		return nil
	}
	if !source.has(sourceMembers[kind]) && kind != "upload" {
		r.refuse(ruleMissing, fmt.Sprintf("the source has the type %s, and no %s.%s", kind, source.path, sourceMembers[kind]), "add it")
	}
	spec := &v1alpha1.BundleSourceSpec{Sources: read(r, source, resolved)}
	return spec
}

// sourceMembers are the fields that hold the source of a type.
var sourceMembers = map[string]string{
	"image": "image", "git": "git", "http": "http", "configMaps": "configMaps", "upload": "upload", "local": "local",
}

// rukpakSources read the sources of RukPak by their types. The further fields are what the source was resolved to.
var rukpakSources = map[string]func(r *reading, source, resolved fields) []v1alpha1.Source{
	"image":      rukpakImage,
	"git":        rukpakGit,
	"http":       rukpakHTTP,
	"configMaps": rukpakConfigMaps,
	"local":      rukpakLocal,
	"upload":     rukpakUpload,
}

// resolved is what RukPak's status says the source was resolved to: of the object, or of the Bundle that it made.
func (r *reading) resolved(in *input) fields {
	if found := r.status.sub("resolvedSource"); len(found.left) > 0 {
		return found
	}
	active := r.status.text("activeBundle")
	for _, bundle := range in.bundles {
		if madeBy(bundle, r.Manifest) && (active == "" || active == bundle.Object.GetName()) {
			return fieldsOf(r, bundle.Object.DeepCopy().Object, "status").sub("resolvedSource")
		}
	}
	return fields{of: r, left: map[string]any{}}
}

// madeBy tells whether a BundleDeployment of RukPak made a Bundle.
func madeBy(bundle, deployment manifest.Manifest) bool {
	return kindOf(deployment.Object) == rukpakGroup+"/BundleDeployment" &&
		bundle.Object.GetLabels()["core.rukpak.io/owner-name"] == deployment.Object.GetName()
}

func rukpakImage(r *reading, source, resolved fields) []v1alpha1.Source {
	image := source.sub("image")
	made := &v1alpha1.ImageSource{Reference: image.text("ref")}
	if made.Reference == "" {
		r.refuse(ruleMissing, image.at("ref")+" is missing", "add the image")
	}
	if digest := resolved.sub("image").text("ref"); strings.Contains(digest, "@sha256:") && digest != made.Reference {
		r.note("%s is installed: RukPak resolved the tag once, to %s; to follow the tag, write it instead", quoted(made.Reference), digest)
		made.Reference = digest
	} else if made.Reference != "" && !strings.Contains(made.Reference, "@") {
		r.note("RukPak resolved the tag of %s once, Satchel does so again every spec.source.interval: write the digest to stay with it", quoted(made.Reference))
	}
	made.SecretRef = r.secret(image.text("pullSecret"), "the login to the registry")
	if image.flag("insecureSkipTLSVerify") {
		r.note("%s has no counterpart: name a Secret with ca.crt in certSecretRef of the image", image.at("insecureSkipTLSVerify"))
	}
	if image.text("certificateData") != "" {
		r.note("%s: put the certificate into a Secret of the namespace, as ca.crt, and name it in certSecretRef of the image", image.at("certificateData"))
	}
	return []v1alpha1.Source{{Image: made}}
}

func rukpakGit(r *reading, source, resolved fields) []v1alpha1.Source {
	git := source.sub("git")
	made := &v1alpha1.GitSource{URL: git.text("repository"), Path: strings.TrimPrefix(git.text("directory"), "./")}
	if made.URL == "" {
		r.refuse(ruleMissing, git.at("repository")+" is missing", "add the URL of the repository")
	}
	ref := git.sub("ref")
	made.Ref = &v1alpha1.GitRef{Branch: ref.text("branch"), Tag: ref.text("tag"), Commit: ref.text("commit")}
	if commit := resolved.sub("git").sub("ref").text("commit"); len(commit) == 40 && commit != made.Ref.Commit {
		r.note("commit %s is installed: RukPak resolved %s once; to follow it, write it instead", commit,
			quoted(firstOf(made.Ref.Branch, made.Ref.Tag, "the default branch")))
		made.Ref = &v1alpha1.GitRef{Commit: commit}
	} else if made.Ref.Commit == "" {
		r.note("RukPak resolved the reference of %s once, Satchel does so again every spec.source.interval: write the commit to stay with it",
			quoted(made.URL))
	}
	if *made.Ref == (v1alpha1.GitRef{}) {
		made.Ref = nil
	}
	made.SecretRef = r.auth(git, "the login to the Git server")
	return []v1alpha1.Source{{Git: made}}
}

func rukpakHTTP(r *reading, source, _ fields) []v1alpha1.Source {
	http := source.sub("http")
	made := &v1alpha1.HTTPSource{URL: http.text("url")}
	if made.URL == "" {
		r.refuse(ruleMissing, http.at("url")+" is missing", "add the URL of the archive")
	}
	made.SecretRef = r.auth(http, "the login to the server")
	return []v1alpha1.Source{{HTTP: made}}
}

// auth reads the login of a Git or HTTP source.
func (r *reading) auth(of fields, what string) *v1alpha1.LocalReference {
	auth := of.sub("auth")
	if auth.flag("insecureSkipVerify") {
		r.note("%s has no counterpart: certificates are always verified; put the certificate authority of the server into the Secret, as ca.crt", auth.at("insecureSkipVerify"))
	}
	return r.secret(auth.sub("secret").text("name"), what)
}

// secret refers to a Secret that was in the namespace of RukPak.
func (r *reading) secret(name, what string) *v1alpha1.LocalReference {
	if name == "" {
		return nil
	}
	r.note("copy the Secret %s (%s) from RukPak's namespace into that of the object", name, what)
	return &v1alpha1.LocalReference{Name: name}
}

func rukpakConfigMaps(r *reading, source, _ fields) []v1alpha1.Source {
	var made []v1alpha1.Source
	places := map[string]bool{}
	for _, item := range source.list("configMaps") {
		name, path := item.sub("configMap").text("name"), strings.Trim(strings.TrimPrefix(item.text("path"), "./"), "/")
		if name == "" {
			r.refuse(ruleMissing, item.at("configMap.name")+" is missing", "add the name of the ConfigMap")
		}
		if places[path] {
			r.refuse(ruleSource, fmt.Sprintf("several ConfigMaps are put into the same folder %s", quoted(path)),
				"join them into one ConfigMap, or give each a path of its own")
		}
		places[path] = true
		r.note("copy the ConfigMap %s from RukPak's namespace into that of the object", name)
		made = append(made, v1alpha1.Source{Destination: path, ConfigMap: &v1alpha1.LocalReference{Name: name}})
		item.rest()
	}
	return made
}

func rukpakLocal(r *reading, source, _ fields) []v1alpha1.Source {
	of := source.sub("local").sub("configMap")
	name, namespace := of.text("name"), of.text("namespace")
	if name == "" {
		r.refuse(ruleMissing, of.at("name")+" is missing", "add the name of the ConfigMap")
	}
	r.note("copy the ConfigMap %s from the namespace %s into that of the object", name, quoted(firstOf(namespace, "of RukPak")))
	return []v1alpha1.Source{{Destination: manifestsFolder, ConfigMap: &v1alpha1.LocalReference{Name: name}}}
}

// unknownDigest stands for content that the manifests do not name; no content has it.
var unknownDigest = "sha256:" + strings.Repeat("0", 64)

// rukpakUpload names the content by its digest, which RukPak does not record.
func rukpakUpload(r *reading, source, _ fields) []v1alpha1.Source {
	source.sub("upload")
	name := r.Object.GetName()
	r.note("the content was uploaded from a disk, and RukPak does not record it: the digest of zeros is a placeholder. satchel run -f FILE FOLDER "+
		"uploads the folder, and writes the BundleDeployment of FILE with its digest; or push the folder as an image, and add --image %s=IMAGE", name)
	return []v1alpha1.Source{{Upload: &v1alpha1.UploadSource{Digest: unknownDigest}}}
}
