// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// check is one kustomization that is checked.
type check struct {
	*tree

	dir, file string
}

// names checks what the kustomization names, and replaces each name by one that the library cannot take for an address.
func (c *check) names(k *types.Kustomization) {
	c.refuse(k)
	for i, name := range k.Resources {
		k.Resources[i] = c.resource("resources", name)
	}
	for i, name := range k.Components {
		k.Components[i] = c.base("components", name)
	}
	c.patches(k)
	for i := range k.Replacements {
		if name := k.Replacements[i].Path; name != "" {
			k.Replacements[i].Path = c.values("replacements", name)
		}
	}
	for _, names := range []struct {
		field string
		list  []string
	}{{"crds", k.Crds}, {"configurations", k.Configurations}} {
		for i, name := range names.list {
			names.list[i] = c.values(names.field, name)
		}
	}
	for i := range k.ConfigMapGenerator {
		c.generator("configMapGenerator", &k.ConfigMapGenerator[i].GeneratorArgs, false)
	}
	for i := range k.SecretGenerator {
		c.generator("secretGenerator", &k.SecretGenerator[i].GeneratorArgs, true)
	}
}

// refuse names the fields that would run or fetch something, or that have an effect beyond this build.
func (c *check) refuse(k *types.Kustomization) {
	for _, field := range []struct {
		name, remedy string
		used         bool
	}{
		{"helmCharts", "render the chart, and name the manifests", len(k.HelmCharts)+len(k.HelmChartInflationGenerator) > 0 || k.HelmGlobals != nil},
		{"generators", "use configMapGenerator and secretGenerator", len(k.Generators) > 0},
		{"transformers", "use patches, labels, images and the other fields", len(k.Transformers) > 0},
		{"validators", "validate before publishing", len(k.Validators) > 0},
		{"openapi", "use patches of the kind JSON 6902 for lists of custom resources", len(k.OpenAPI) > 0},
	} {
		if field.used {
			c.wrong(field.name+" is not supported: it needs programs or schemas of others", field.remedy)
		}
	}
	for _, option := range k.BuildMetadata {
		if option != types.ManagedByLabelOption {
			c.wrong(fmt.Sprintf("buildMetadata may only be %s", types.ManagedByLabelOption), "leave the others out")
		}
	}
}

func (c *check) wrong(message, remedy string) {
	c.report(manifest.Problem{File: c.file, Rule: RuleKustomize, Message: message, Remedy: remedy})
}

// locate finds what a field names inside the bundle.
func (c *check) locate(field, name string) (string, fs.FileInfo) {
	const inside = "give a path inside the bundle, relative to the kustomization"
	clean := path.Join(c.dir, name)
	switch {
	case isRemote(name):
		c.wrong(fmt.Sprintf("%s names %s, which is not in the bundle", field, remote(name)), "copy it into the bundle: nothing is fetched while a bundle is built")
		return "", nil
	case name == "" || path.IsAbs(name) || strings.Contains(name, `\`) || !fs.ValidPath(clean):
		c.wrong(fmt.Sprintf("%s names %q, which leaves the bundle", field, short(name)), inside)
		return "", nil
	}
	if linked, err := manifest.Linked(c.files, clean); err == nil && linked {
		c.wrong(fmt.Sprintf("%s names %q, which is a symbolic link or lies behind one", field, short(name)), "replace the link by what it points to")
		return "", nil
	}
	info, err := fs.Lstat(c.files, clean)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.wrong(fmt.Sprintf("%s names %q, which the bundle does not contain", field, short(name)), inside)
		return "", nil
	case err != nil:
		c.report(*manifest.Unreadable(clean, err))
		return "", nil
	}
	return clean, info
}

// isRemote tells what the library would fetch or clone, to say so; nothing depends on it.
func isRemote(name string) bool {
	return strings.Contains(name, "://") || strings.HasPrefix(name, "git@") || strings.Contains(name, "?ref=") ||
		strings.HasPrefix(name, "github.com/") || strings.HasPrefix(name, "git::")
}

// remote names an address without what may be a password in it.
func remote(name string) string {
	if at := strings.LastIndexByte(name, '@'); at >= 0 {
		name = "…" + name[at:]
	}
	query, _, _ := strings.Cut(short(name), "?")
	return fmt.Sprintf("%q", query)
}

func short(name string) string {
	if len(name) > 200 {
		return strings.ToValidUTF8(name[:200], "") + "…"
	}
	return name
}

// local is a name that the library takes for a path in any case: the folder github.com/org/repo would be cloned.
func local(name string) string { return "./" + name }

// resource is a file of manifests, or a folder with a kustomization.
func (c *check) resource(field, name string) string {
	clean, info := c.locate(field, name)
	switch {
	case info == nil:
		return ""
	case info.IsDir():
		c.folder(clean)
	case c.first(clean):
		for _, m := range c.reader.Read(clean) {
			c.keep(m.Object.Object)
		}
	}
	return local(name)
}

// base is a folder with a kustomization.
func (c *check) base(field, name string) string {
	clean, info := c.locate(field, name)
	switch {
	case info == nil:
		return ""
	case !info.IsDir():
		c.wrong(fmt.Sprintf("%s names %q, which is no folder", field, short(name)), "name the folder of its kustomization")
		return ""
	}
	c.folder(clean)
	return local(name)
}

// values is a file that is read as it is: patches, replacements, configurations.
func (c *check) values(field, name string) string {
	clean, info := c.locate(field, name)
	if info == nil {
		return ""
	}
	if c.first(clean) {
		values, _ := c.reader.Values(clean)
		for _, value := range values {
			c.keep(value)
		}
	}
	return local(name)
}

// patches are files or texts in the kustomization.
func (c *check) patches(k *types.Kustomization) {
	for i := range k.Patches {
		c.patch("patches", &k.Patches[i])
	}
	json6902, merge := k.PatchesJson6902, k.PatchesStrategicMerge //nolint:staticcheck // deprecated, and in use
	for i := range json6902 {
		c.patch("patchesJson6902", &json6902[i])
	}
	for i, entry := range merge {
		text := string(entry)
		if strings.Contains(text, "\n") || strings.Contains(text, ": ") {
			c.inline("patchesStrategicMerge", text)
			continue
		}
		merge[i] = types.PatchStrategicMerge(c.values("patchesStrategicMerge", text))
	}
}

func (c *check) patch(field string, p *types.Patch) {
	if p.Path != "" {
		p.Path = c.values(field, p.Path)
	}
	if p.Patch != "" {
		c.inline(field, p.Patch)
	}
}

// inline is a string in the kustomization that holds documents.
func (c *check) inline(field, text string) {
	values, ok := c.reader.ValuesOf(c.file, []byte(text))
	if !ok {
		c.wrong("a value under "+field+" is not valid YAML", "correct it")
	}
	for _, value := range values {
		c.keep(value)
	}
}

// generator makes a ConfigMap or Secret of files and literals.
func (c *check) generator(field string, g *types.GeneratorArgs, secret bool) {
	for i, source := range g.FileSources {
		key, name, given := strings.Cut(source, "=")
		if !given {
			key, name = path.Base(source), source
		}
		if key == "" || strings.Contains(name, "=") {
			c.wrong(fmt.Sprintf("%s %q: a file is given as NAME or KEY=NAME", field, short(g.Name)), "correct it")
			continue
		}
		c.raw(field, name, secret)
		g.FileSources[i] = key + "=" + local(name)
	}
	for i, name := range g.EnvSources {
		data := c.raw(field, name, secret)
		g.EnvSources[i] = local(name)
		if !utf8.Valid(data) { // the library's own message would quote it
			c.wrong(fmt.Sprintf("%s %q: %q is not valid UTF-8", field, short(g.Name), short(name)), "give it under files instead")
		}
	}
	for _, literal := range g.LiteralSources {
		key, value, given := strings.Cut(literal, "=")
		if !given || key == "" { // the library's own message would quote it
			c.wrong(fmt.Sprintf("%s %q: a literal is given as KEY=VALUE", field, short(g.Name)), "correct it")
			continue
		}
		if secret {
			c.hide(value)
		}
	}
}

// raw reads a file as the bytes of a value.
func (c *check) raw(field, name string, secret bool) []byte {
	clean, info := c.locate(field, name)
	if info == nil {
		return nil
	}
	c.first(clean)
	data, _ := c.reader.Bytes(clean)
	if secret {
		c.hide(string(data))
		for line := range strings.Lines(string(data)) {
			_, value, _ := strings.Cut(line, "=")
			c.hide(strings.TrimSpace(value))
		}
	}
	return data
}
