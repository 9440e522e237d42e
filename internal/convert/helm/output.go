// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/release/v1/util"

	"github.com/satchel-dev/satchel/internal/convert/helm/load"
	"github.com/satchel-dev/satchel/internal/convert/helm/message"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// output gathers the objects of a chart.
type output struct {
	reader    *manifest.Reader
	manifests []manifest.Manifest
	hooks     []Hook
	warnings  []string
	version   string
}

func newOutput(files fs.FS, limits manifest.Limits) *output {
	return &output{reader: manifest.NewReader(files, limits)}
}

func (o *output) warn(texts ...string) { o.warnings = append(o.warnings, texts...) }

// definitions adds the CRDs of crds/, which are no templates. Two aliases of a chart bring the same ones.
func (o *output) definitions(c *chart.Chart) {
	first := map[manifest.ID]manifest.Manifest{}
	for _, crd := range c.CRDObjects() {
		_, name, _ := strings.Cut(crd.Filename, "/")
		for _, m := range o.reader.Objects(name, crd.File.Data) {
			id := manifest.IDOf(m.Object)
			earlier, double := first[id]
			if double && id.Name != "" && reflect.DeepEqual(earlier.Object.Object, m.Object.Object) {
				continue
			}
			first[id] = m
			o.manifests = append(o.manifests, m)
		}
	}
}

// notes is the file that Helm shows to the user who installs a chart.
const notes = "NOTES.txt"

// rendered adds what templates wrote: objects and hooks.
func (o *output) rendered(chartName string, texts map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if path.Base(name) == notes || strings.TrimSpace(texts[name]) == "" {
			continue
		}
		file := strings.TrimPrefix(name, chartName+"/")
		for i, document := range documents(texts[name]) {
			before, repeated := len(o.reader.Problems()), len(o.reader.Repeats())
			for _, m := range o.reader.Objects(file, []byte(document)) {
				m.Document = i + 1
				o.object(m)
			}
			for j := range o.reader.Problems()[before:] { // the reader was given one document only
				o.reader.Problems()[before+j].Document = i + 1
			}
			for j := range o.reader.Repeats()[repeated:] {
				o.reader.Repeats()[repeated+j].Document = i + 1
			}
		}
	}
}

// documents splits a text where Helm does: at dashes, though there be text after them.
func documents(text string) []string {
	split := util.SplitManifests(text)
	keys := slices.Collect(maps.Keys(split))
	slices.SortFunc(keys, func(a, b string) int { return numberOf(a) - numberOf(b) })
	parts := make([]string, 0, len(keys))
	for _, key := range keys {
		parts = append(parts, split[key])
	}
	return parts
}

// numberOf is the number at the end of a key.
func numberOf(key string) int {
	n, _ := strconv.Atoi(key[strings.LastIndexByte(key, '-')+1:]) // the library ends each with one
	return n
}

// events at which hooks run; of tests and rollbacks there are none here.
var events = words("pre-install post-install pre-upgrade post-upgrade pre-delete post-delete")

// unused are events of Helm that do not happen here.
var unused = words("test test-success pre-rollback post-rollback")

// object adds an object, or a hook.
func (o *output) object(m manifest.Manifest) {
	annotations := m.Object.GetAnnotations()
	written, isHook := annotations[release.HookAnnotation]
	if !isHook {
		o.manifests = append(o.manifests, m)
		return
	}
	h := Hook{Manifest: m, DeletePolicies: listed(annotations[release.HookDeleteAnnotation])}
	for _, event := range listed(written) {
		switch {
		case events[event]:
			h.Events = append(h.Events, event)
		case !unused[event]: // as Helm has it, such an object is nothing at all
			o.warn(fmt.Sprintf("%s: %s is left out: %q is no event of a hook", m.File, manifest.Describe(m.Object), message.Shorten(message.Printable(event))))
			return
		}
	}
	if len(h.Events) == 0 {
		o.warn(fmt.Sprintf("%s: %s is left out: it is a hook for %s, which does not happen here", m.File, manifest.Describe(m.Object), message.Shorten(message.Printable(written))))
		return
	}
	h.Weight = o.weight(m, annotations[release.HookWeightAnnotation])
	if len(h.DeletePolicies) == 0 {
		h.DeletePolicies = []string{release.HookBeforeHookCreation.String()}
	}
	o.hooks = append(o.hooks, h)
}

// weight of a hook; what is no number counts as zero, as in Helm.
func (o *output) weight(m manifest.Manifest, text string) int {
	n, err := strconv.Atoi(text)
	if err != nil && text != "" {
		o.warn(fmt.Sprintf("%s: the weight of the hook %s is no number, and counts as 0", m.File, manifest.Describe(m.Object)))
	}
	return n
}

// words makes a set of the words of a list.
func words(list string) map[string]bool {
	all := map[string]bool{}
	for _, name := range strings.Fields(list) {
		all[name] = true
	}
	return all
}

// listed splits an annotation at commas.
func listed(text string) []string {
	var all []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.ToLower(strings.TrimSpace(part)); part != "" {
			all = append(all, part)
		}
	}
	return all
}

// compareHooks orders by weight, then name, then kind, as those of an event run.
func compareHooks(a, b Hook, order map[string]int) int {
	kind := func(h Hook) int {
		if n := order[h.Object.GetKind()]; n > 0 {
			return n
		}
		return len(order) + 1
	}
	return cmp.Or(cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Object.GetName(), b.Object.GetName()),
		cmp.Compare(kind(a), kind(b)), cmp.Compare(a.Object.GetKind(), b.Object.GetKind()))
}

// result sorts hooks as Helm runs them.
func (o *output) result() (Result, []manifest.Problem) {
	order := map[string]int{}
	for i, kind := range util.InstallOrder {
		order[kind] = i + 1
	}
	slices.SortStableFunc(o.hooks, func(a, b Hook) int { return compareHooks(a, b, order) })
	o.warn(o.reader.Warnings()...)
	slices.Sort(o.warnings)
	all := slices.Clone(o.manifests)
	for _, h := range o.hooks {
		all = append(all, h.Manifest)
	}
	problems := append(o.reader.Problems(), manifest.Identities(all)...)
	if len(problems) == 0 && len(all) == 0 {
		problems = append(problems, manifest.Problem{File: load.ChartFile, Rule: message.Rule, Message: "nothing comes out of the chart", Remedy: "check the values that switch its parts on"})
	}
	return Result{Version: o.version, Manifests: o.manifests, Hooks: o.hooks, Warnings: slices.Compact(o.warnings)}, problems
}
