// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// advice adapts a finding of upstream that contains given words.
type advice struct {
	words string
	// message replaces upstream's up to the kind that it ends with; empty: upstream's stays.
	message string
	remedy  string
	// severity replaces the suite's where Satchel handles the problem; empty: the suite's stays.
	severity Severity
	// ours is the rule under which the converter reports the same; dropped leaves the finding out.
	ours    string
	dropped bool
}

// advices in the order in which they are tried, the first that fits counts.
var advices = []advice{
	// Of a ClusterServiceVersion.
	{words: "metadata.name", remedy: "name it <package>.v<version>, in at most 63 lower-case letters, digits, '-' and '.'"},
	{words: "spec.replaces", remedy: "give the name of the version before, or leave it out"},
	{words: "example annotations not found", message: "the annotation alm-examples is missing", remedy: "add it, with an example of each owned kind"},
	{words: "annotations not found", message: "there are no annotations, so no examples either", remedy: "add alm-examples, with an example of each owned kind"},
	{words: "both `alm-examples`", message: "there are two annotations with examples, alm-examples and olm.examples", remedy: "keep alm-examples"},
	{words: "invalid example", remedy: "make the annotation alm-examples a JSON list of objects"},
	{words: "error decoding example", remedy: "make the annotation alm-examples a JSON list of objects"},
	{words: "couldn't parse plural.group", remedy: "give it the name of the CustomResourceDefinition, such as widgets.example.com"},
	{words: "example must have a provided API", message: "alm-examples has an example of a kind that the bundle does not own", remedy: "correct its apiVersion and kind, or list the kind as owned"},
	{words: "provided API should have an example", message: "alm-examples has no example of a kind that the bundle owns", remedy: "add one, for users to begin with"},
	{words: "install modes not found", ours: "C4", remedy: "list them in spec.installModes"},
	{words: "none of InstallModeTypes", ours: "C4", remedy: "support one in spec.installModes"},
	{words: "duplicate install modes", remedy: "list each install mode once"},
	{words: "only AllNamespaces InstallModeType", ours: "V6", remedy: "support AllNamespaces alone"},
	{words: "minKubeVersion is not informed", message: "spec.minKubeVersion is not set, which says that every version of Kubernetes will do", remedy: "set it to the oldest version that was tested"},
	{words: "unable to use csv.Spec.MinKubeVersion", dropped: true},
	{words: "MinKubeVersion has an invalid value", message: "spec.minKubeVersion is not a version", remedy: "write it with three numbers, such as 1.30.0"},
	{words: "uses wrong case", remedy: "rename the annotation"},
	{words: "found olm.properties annotation", message: "properties are given in the annotation olm.properties", remedy: "move them to metadata/properties.yaml"},
	{words: "'apiVersion' is missing", ours: manifest.RuleIdentity, remedy: "add it"},
	{words: "required field missing", remedy: "set it"},

	// Of a bundle.
	{words: "duplicate CRD", ours: "V3", message: "a kind and version is defined twice", remedy: "keep one of them"},
	{words: "not found in bundle", ours: "V4", message: "the bundle owns a kind and version that it does not contain", remedy: "correct name, version and kind in spec.customresourcedefinitions.owned, or add the CustomResourceDefinition"},
	{words: "not defined in CSV", message: "the bundle contains a CustomResourceDefinition that it does not own; it is installed all the same",
		remedy: "list it in spec.customresourcedefinitions.owned", severity: Warning},
	{words: "invalid service account found", message: "the ClusterServiceVersion names this account too; the two are merged",
		remedy: "leave it out, or rename one of them", severity: Warning},
	{words: "maximum bundle compressed size", remedy: "make it smaller for OLM v0, which keeps a bundle in one ConfigMap; Satchel has no such limit", severity: Warning},
	{words: "unable to check the bundle", dropped: true},
	{words: "relatedImages[", remedy: "give an image reference, such as registry.example.org/tool:v1"},
	{words: "release versioning", remedy: "rename the ClusterServiceVersion"},

	// Of other objects.
	{words: "maxUnavailable", remedy: "let one Pod go at least, or nodes cannot be drained"},
	{words: "minAvailable", remedy: "let one Pod go at least, or nodes cannot be drained"},
	{words: "globalDefault", remedy: "set it to false: it would give all other Pods of the cluster that priority"},
	{words: "create/update poddisruptionbudgets", remedy: "remove the permission unless the operator needs it"},
	{words: "securitycontextconstraints", remedy: "let the operator create its own instead"},
	{words: "removed in v1.22", remedy: "write them in the version that has replaced theirs; Satchel converts CustomResourceDefinitions", severity: Warning},
	{words: "deprecated and removed in", remedy: "write them in the version that has replaced theirs"},

	// Good practice, and what catalogs show.
	{words: "unable to find a deployment", message: "the bundle installs no Deployment", remedy: "add the operator's to spec.install.spec.deployments"},
	{words: "resource requests", remedy: "set resources.requests, for schedulers to plan with and quotas to let its Pods pass"},
	{words: "has an empty description", remedy: "describe it in spec.customresourcedefinitions"},
	{words: "channel(s)", remedy: "begin the names of channels with candidate, fast or stable"},
	{words: "permissions to create CRD", message: "the operator may create CustomResourceDefinitions, which belong into bundles",
		remedy: "remove the permission unless the operator needs it"},
	{words: "versioning convention", message: "the name does not end in a version of three numbers", remedy: "name it <package>.v<major>.<minor>.<patch>"},
	{words: "naming convention", message: "the name is not of the form <package>.v<version>", remedy: "rename it"},
	{words: "not a valid capabilities level", remedy: "choose among Basic Install, Seamless Upgrades, Full Lifecycle, Deep Insights and Auto Pilot"},
	{words: "set of standard categories", remedy: "choose among the categories of operatorhub.io"},
}

// advise finds the advice for a finding.
func advise(f *finding) {
	at := slices.IndexFunc(advices, func(a advice) bool { return strings.Contains(f.Message, a.words) })
	if at < 0 {
		return
	}
	f.advice = advices[at]
	f.Message = settle(f.Message)
	if f.advice.message != "" {
		f.Message = f.advice.message
	}
	f.Remedy = f.advice.remedy
	if f.advice.severity != "" {
		f.Severity = f.advice.severity
	}
}

// settle makes one stable sentence of upstream messages that have several sentences, or the order of a map.
func settle(text string) string {
	if _, after, found := strings.Cut(text, "resource requests for the container: ("); found {
		name, _, _ := strings.Cut(after, ")")
		return "the container " + name + " requests neither CPU nor memory"
	}
	if _, after, found := strings.Cut(text, "channel(s) ["); found {
		listed, _, _ := strings.Cut(after, "] are not")
		names := strings.Split(listed, `" "`)
		for i := range names {
			names[i] = strings.Trim(names[i], `"`)
		}
		slices.Sort(names)
		return "channels that do not follow the convention of names: " + strings.Join(names, ", ")
	}
	if before, after, found := strings.Cut(text, "Migrate the API(s) for "); found && strings.Contains(before, "removed in v") {
		_, version, _ := strings.Cut(before, "removed in v")
		version, _, _ = strings.Cut(version, ". ")
		kinds := strings.Split(after, ",")
		slices.Sort(kinds)
		return "Kubernetes " + version + " has removed the versions of these: " + strings.Join(kinds, ", ")
	}
	return text
}

// unreported drops the findings that the converter reports too.
func unreported(found []finding, ours []Problem) []Problem {
	var out []Problem
	for _, f := range found {
		same := func(p Problem) bool {
			return p.Rule == f.advice.ours && strings.Contains(p.Object+p.Message, f.kind)
		}
		if f.advice.dropped || f.advice.ours != "" && slices.ContainsFunc(ours, same) {
			continue
		}
		out = append(out, f.Problem)
	}
	return out
}

// warnings of the converter, by words they contain.
var warnings = []struct{ words, rule, remedy string }{
	{"brings a conversion webhook", "K2", "define it in the ClusterServiceVersion, or drop it from the CustomResourceDefinition"},
	{"selects other Pods", "O4", "rename the Service, or leave it out"},
	{"leads elsewhere", "O4", "rename the Service, or give the port another number"},
	{"is a custom resource of the group", "A2", "leave it out of the bundle; examples belong into the annotation alm-examples"},
	{"it does not get these permissions", "A4", "leave the namespace of the subject to spec.install of the ClusterServiceVersion, which binds its accounts, or install in that namespace"},
	{"which is not of the bundle", "A4", "check whether that account is meant to have these permissions"},
	{"not manifests by name", "P4", "move them out of manifests/"},
	{"is written in v1beta1", "P10", "write it in v1"},
	{"is not a valid name, and is ignored", "identity", "correct it, or leave it out"},
	{"since requirements are not enforced", "requirement", "correct it in the bundle, and see to it yourself until then"},
	{"has no apiVersion", "P6", "add it"},
	{"is not a list of dependencies", "P13", "write dependencies as a list, each with type and value"},
	{"twice in one mapping", "P7", "remove one of them"},
	{"is about a catalog", "requirement", "see to it yourself, or require packages and APIs one by one"},
	{"minKubeVersion", "requirement", "write it with three numbers, such as 1.30.0"},
	{"is not checked", "requirement", "correct it in the bundle, and see to it yourself until then"},
	{"not known, and not checked", "requirement", "see to it yourself"},
}

// warning is one of the converter's, which begin with the file that they are about.
func warning(text string) Problem {
	p := Problem{Severity: Warning, Rule: "conversion", Message: text, Remedy: "check whether that is intended"}
	if file, rest, found := strings.Cut(text, ": "); found && manifest.Named(file) && !strings.Contains(file, " ") {
		p.File, p.Message = file, rest
	}
	for _, w := range warnings {
		if strings.Contains(text, w.words) {
			p.Rule, p.Remedy = w.rule, w.remedy
			break
		}
	}
	return p
}
