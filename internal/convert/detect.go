// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert/helm/load"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

const (
	annotationsFile = "metadata/annotations.yaml"
	manifestsFolder = "manifests"
	mediaType       = "operators.operatorframework.io.bundle.mediatype.v1"
	chooseFormat    = `set spec.format to "registry+v1", "plain+v0", "kustomize" or "helm"`
)

// formatOf is the format asked for, or the one that the tree shows beyond doubt. These are the marks of formats at its root:
//
//	mark                                                                          format
//	metadata/annotations.yaml and manifests/, mediatype registry+v1 or none       registry+v1
//	the same, any other mediatype, with a CSV in manifests/                       registry+v1, as OLM takes it
//	the same, mediatype plain+v0, without a CSV                                   plain+v0
//	metadata/annotations.yaml without manifests/, mediatype registry+v1           registry+v1, which then says what is missing
//	Chart.yaml                                                                    helm
//	a kustomization                                                               kustomize
//
// One mark decides. Several are refused, and so are annotations of another mediatype without a CSV, and a CSV in manifests/
// without annotations. Where there is no mark, any manifest makes it plain+v0, unless a folder further down has one: then these folders
// are named. Without manifests, one package of a chart makes it helm. A path that names such a package says so by itself.
func formatOf(e entered, o Options) (Format, *Problem) {
	switch o.Format {
	case Helm:
		return Helm, e.missing(Helm, o)
	case PlainV0, RegistryV1, Kustomize:
		if e.packaged != "" {
			return "", &Problem{Rule: "format", File: e.packaged, Message: fmt.Sprintf("the path names a package of a chart, and the format is %s", o.Format), Remedy: `set spec.format to "helm", or leave it out`}
		}
		return o.Format, e.missing(o.Format, o)
	case "":
		if e.packaged != "" {
			return Helm, nil
		}
		return e.detect(o)
	}
	return "", &Problem{Rule: "format", Message: fmt.Sprintf("the format %q is not supported", o.Format), Remedy: chooseFormat}
}

// detector looks at a folder; the first file that could not be read ends its certainty.
type detector struct {
	files  fs.FS
	folder string // its path in the bundle
	limits Limits
	failed *Problem
}

func (e entered) detector(o Options) *detector {
	return &detector{files: e.root, folder: e.folder, limits: o.Limits.OrDefault()}
}

func (e entered) detect(o Options) (Format, *Problem) {
	d := e.detector(o)
	format, problem := d.detect()
	if d.failed != nil {
		return "", d.failed
	}
	return format, problem
}

// missing names the folders of a format that is asked for, where the entered one has no mark of it. Without such folders the
// converter says what is missing.
func (e entered) missing(format Format, o Options) *Problem {
	d := e.detector(o)
	if format == PlainV0 || e.packaged != "" || d.marked(format) || format == Helm && d.hasPackage() {
		return d.failed
	}
	found := d.look()
	found.manifests = false // plain+v0 is not what is wanted
	found.candidates = slices.DeleteFunc(found.candidates, func(c candidate) bool { return c.format != format })
	if d.failed != nil || len(found.candidates) == 0 {
		return d.failed
	}
	return d.refusal(found)
}

// marked tells whether the folder has the mark of a format.
func (d *detector) marked(format Format) bool {
	switch format {
	case Helm:
		return d.exists(chart)
	case Kustomize:
		return d.kustomization() != ""
	case RegistryV1:
		return d.exists(annotationsFile) || d.exists(manifestsFolder)
	}
	return false
}

func (d *detector) detect() (Format, *Problem) {
	marks, problem := d.marks()
	switch {
	case problem != nil:
		return "", problem
	case len(marks) > 1:
		return "", ambiguous(marks)
	case len(marks) == 1:
		return marks[0].format, nil
	}
	found := d.look()
	switch {
	case len(found.candidates) > 0:
		return "", d.refusal(found)
	case found.manifests:
		return PlainV0, nil
	case d.hasPackage():
		return Helm, nil
	}
	return "", &Problem{
		Rule: "format", Message: "no manifests were found, neither YAML nor JSON files",
		Remedy: "point spec.path at the folder of the bundle",
	}
}

// mark is a file that shows a format.
type mark struct {
	format Format
	file   string
}

// marks finds what shows a format, in the order in which it is named to people.
func (d *detector) marks() ([]mark, *Problem) {
	var found []mark
	format, problem := d.annotated()
	switch {
	case problem != nil:
		return nil, problem
	case format != "":
		found = append(found, mark{format, annotationsFile})
	case d.hasCSV():
		return nil, &Problem{
			Rule: "format", File: annotationsFile,
			Message: "manifests/ holds a ClusterServiceVersion as a registry+v1 bundle does, but this file is missing",
			Remedy:  "add it, or " + chooseFormat,
		}
	}
	if d.exists(chart) {
		found = append(found, mark{Helm, chart})
	}
	if name := d.kustomization(); name != "" {
		found = append(found, mark{Kustomize, name})
	}
	return found, nil
}

// ambiguous says which formats a tree could have, and how to choose.
func ambiguous(marks []mark) *Problem {
	seen, named := make([]string, 0, len(marks)), make([]string, 0, len(marks))
	for _, m := range marks {
		seen = append(seen, fmt.Sprintf("%s (%s)", m.format, m.file))
		named = append(named, fmt.Sprintf("%q", m.format))
	}
	return &Problem{
		Rule: "format", Message: "more than one format matches: " + enumerate(seen, "and"),
		Remedy: "set spec.format to " + enumerate(named, "or") + ", or point spec.path at a folder that holds one of them only",
	}
}

// enumerate joins words as a sentence does.
func enumerate(words []string, last string) string {
	end := len(words) - 1
	return strings.Join(words[:end], ", ") + " " + last + " " + words[end]
}

// annotated decides where there are annotations; neither format nor problem means that they decide nothing.
func (d *detector) annotated() (Format, *Problem) {
	if !d.exists(annotationsFile) {
		return "", nil
	}
	declared, problem := d.declaredMediaType()
	switch {
	case problem != nil:
		return "", problem
	case !d.exists(manifestsFolder) && declared != string(RegistryV1):
		return "", nil
	case declared == "" || declared == string(RegistryV1):
		return RegistryV1, nil
	case d.hasCSV():
		return RegistryV1, nil
	case declared == string(PlainV0):
		return PlainV0, nil
	}
	return "", &Problem{
		Rule: "format", File: annotationsFile,
		Message: fmt.Sprintf("the bundle declares the media type %q, which is not supported", declared), Remedy: chooseFormat + " if it is one of them all the same",
	}
}

func (d *detector) declaredMediaType() (string, *Problem) {
	var content struct {
		Annotations map[string]any `json:"annotations"`
	}
	data, problem := manifest.NewReader(d.files, d.limits).ReadFile(annotationsFile, "P2")
	if problem != nil {
		return "", problem
	}
	if err := yaml.Unmarshal(data, &content); err != nil {
		return "", &Problem{Rule: "P2", File: annotationsFile, Message: "the annotations cannot be read as YAML", Remedy: "correct the file"}
	}
	declared, _ := content.Annotations[mediaType].(string)
	return declared, nil
}

// chart is what makes a folder a chart.
const chart = "Chart.yaml"

func (d *detector) exists(name string) bool {
	_, err := fs.Stat(d.files, name)
	return d.read(name, err)
}

// read says whether something was there; anything but its absence is remembered.
func (d *detector) read(name string, err error) bool {
	if err != nil && !errors.Is(err, fs.ErrNotExist) && d.failed == nil {
		d.failed = manifest.Unreadable(name, err)
	}
	return err == nil
}

// hasCSV looks for the word in the files right in manifests/; a false friend only leads to a question, never to an apply.
func (d *detector) hasCSV() bool {
	if !d.exists(manifestsFolder) {
		return false
	}
	entries, err := fs.ReadDir(d.files, manifestsFolder)
	if !d.read(manifestsFolder, err) {
		return false
	}
	for _, entry := range entries {
		if entry.Type().IsRegular() && manifest.Named(entry.Name()) && d.mentions(path.Join(manifestsFolder, entry.Name())) {
			return true
		}
	}
	return false
}

func (d *detector) mentions(name string) bool {
	f, err := d.files.Open(name)
	if !d.read(name, err) {
		return false
	}
	defer f.Close() //nolint:errcheck // opened for reading only: closing cannot lose anything
	data, err := io.ReadAll(io.LimitReader(f, d.limits.FileBytes))
	return d.read(name, err) && csvKind(data)
}

// csvKind finds a line (or JSON member) that gives the kind ClusterServiceVersion.
func csvKind(data []byte) bool {
	const word, before = "ClusterServiceVersion", 16
	for {
		at := bytes.Index(data, []byte(word))
		if at < 0 {
			return false
		}
		head := strings.TrimRight(string(data[max(0, at-before):at]), ` "'`)
		head, colon := strings.CutSuffix(head, ":")
		if colon && strings.HasSuffix(strings.TrimRight(head, ` "'`), "kind") {
			return true
		}
		data = data[at+len(word):]
	}
}

// hasPackage tells whether the root holds one package of a chart.
func (d *detector) hasPackage() bool {
	name, err := load.Packaged(d.files)
	return d.read(".", err) && name != ""
}
