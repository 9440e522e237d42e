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

	"github.com/satchel-dev/satchel/internal/convert/kustomize"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

const (
	annotationsFile = "metadata/annotations.yaml"
	manifestsFolder = "manifests"
	mediaType       = "operators.operatorframework.io.bundle.mediatype.v1"
	chooseFormat    = `set spec.format to "registry+v1", "plain+v0" or "kustomize"`
)

// formatOf is the format asked for, or the one that the tree shows beyond doubt:
//
//	metadata/annotations.yaml   manifests/   mediatype        CSV in manifests/   format
//	yes                         yes          registry+v1, -   any                 registry+v1
//	yes                         yes          plain+v0         yes                 registry+v1, as OLM takes it
//	yes                         yes          plain+v0         no                  plain+v0
//	yes                         yes          another          any                 refused
//	yes                         no           registry+v1      -                   registry+v1, which then says what is missing
//	no                          yes          -                yes                 refused: the annotations are missing
//	otherwise, with Chart.yaml                                                    refused: not supported
//	otherwise, with a kustomization                                               kustomize
//	otherwise, with manifests                                                     plain+v0
func formatOf(files fs.FS, o Options) (Format, *Problem) {
	switch o.Format {
	case PlainV0, RegistryV1, Kustomize:
		return o.Format, nil
	case "":
		return detect(files, o.Limits.OrDefault())
	}
	return "", &Problem{Rule: "format", Message: fmt.Sprintf("the format %q is not supported", o.Format), Remedy: chooseFormat}
}

// detector looks at a tree; the first file that could not be read ends its certainty.
type detector struct {
	files  fs.FS
	limits Limits
	failed *Problem
}

func detect(files fs.FS, limits Limits) (Format, *Problem) {
	d := &detector{files: files, limits: limits}
	format, problem := d.detect()
	if d.failed != nil {
		return "", d.failed
	}
	return format, problem
}

func (d *detector) detect() (Format, *Problem) {
	if d.exists(annotationsFile) {
		if format, problem := d.annotated(); format != "" || problem != nil {
			return format, problem
		}
	}
	if d.hasCSV() {
		return "", &Problem{
			Rule: "format", File: annotationsFile,
			Message: "manifests/ holds a ClusterServiceVersion as a registry+v1 bundle does, but this file is missing",
			Remedy:  "add it, or " + chooseFormat,
		}
	}
	if problem := d.unsupported(); problem != nil {
		return "", problem
	}
	if d.hasKustomization() {
		return Kustomize, nil
	}
	if !d.holdsManifests() {
		return "", &Problem{
			Rule: "format", Message: "no manifests were found, neither YAML nor JSON files",
			Remedy: "point spec.path at the folder of the bundle",
		}
	}
	return PlainV0, nil
}

// annotated decides where there are annotations; neither format nor problem means that they decide nothing.
func (d *detector) annotated() (Format, *Problem) {
	declared, problem := d.declaredMediaType()
	switch {
	case problem != nil:
		return "", problem
	case !d.exists(manifestsFolder) && declared != string(RegistryV1):
		return "", nil
	case declared == "" || declared == string(RegistryV1):
		return RegistryV1, nil
	case declared == string(PlainV0) && d.hasCSV():
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

const chart = "Chart.yaml"

// unsupported recognises trees of formats that are refused, so that the refusal can name them.
func (d *detector) unsupported() *Problem {
	if !d.exists(chart) {
		return nil
	}
	return &Problem{
		Rule: "format", File: chart, Message: "this is a Helm chart; the supported formats are registry+v1, plain+v0 and kustomize",
		Remedy: "render it to manifests first, or point spec.path at a folder of manifests",
	}
}

func (d *detector) hasKustomization() bool { return slices.ContainsFunc(kustomize.FileNames, d.exists) }

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

func (d *detector) holdsManifests() bool {
	found := false
	err := fs.WalkDir(d.files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() && manifest.Named(name) {
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return d.read(".", err) && found
}
