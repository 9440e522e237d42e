// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

const (
	annotationsFile = "metadata/annotations.yaml"
	manifestsFolder = "manifests"
	mediaType       = "operators.operatorframework.io.bundle.mediatype.v1"
	chooseFormat    = `set spec.format to "registry+v1" or "plain+v0"`
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
//	otherwise, with Chart.yaml or a kustomization                                 refused: not supported
//	otherwise, with manifests                                                     plain+v0
func formatOf(files fs.FS, o Options) (Format, *Problem) {
	switch o.Format {
	case PlainV0, RegistryV1:
		return o.Format, nil
	case "":
		return detect(files, o.Limits.OrDefault())
	}
	return "", &Problem{Rule: "format", Message: fmt.Sprintf("the format %q is not supported", o.Format), Remedy: chooseFormat}
}

func detect(files fs.FS, limits Limits) (Format, *Problem) {
	if exists(files, annotationsFile) {
		if format, problem := detectAnnotated(files, limits); format != "" || problem != nil {
			return format, problem
		}
	}
	if hasCSV(files, limits) {
		return "", &Problem{Rule: "format", File: annotationsFile,
			Message: "manifests/ holds a ClusterServiceVersion as a registry+v1 bundle does, but this file is missing",
			Remedy:  "add it, or " + chooseFormat}
	}
	if problem := unsupported(files); problem != nil {
		return "", problem
	}
	if !holdsManifests(files) {
		return "", &Problem{Rule: "format", Message: "no manifests were found, neither YAML nor JSON files",
			Remedy: "point spec.path at the folder of the bundle"}
	}
	return PlainV0, nil
}

func detectAnnotated(files fs.FS, limits Limits) (Format, *Problem) {
	declared, problem := declaredMediaType(files, limits)
	switch {
	case problem != nil:
		return "", problem
	case !exists(files, manifestsFolder) && declared != string(RegistryV1):
		return "", nil
	case declared == "" || declared == string(RegistryV1):
		return RegistryV1, nil
	case declared == string(PlainV0) && hasCSV(files, limits):
		return RegistryV1, nil
	case declared == string(PlainV0):
		return PlainV0, nil
	}
	return "", &Problem{Rule: "format", File: annotationsFile,
		Message: fmt.Sprintf("the bundle declares the media type %q, which is not supported", declared), Remedy: chooseFormat + " if it is one of them all the same"}
}

func declaredMediaType(files fs.FS, limits Limits) (string, *Problem) {
	var content struct {
		Annotations map[string]any `json:"annotations"`
	}
	data, err := manifest.NewReader(files, limits).ReadFile(annotationsFile)
	if err == nil {
		err = yaml.Unmarshal(data, &content)
	}
	if err != nil {
		return "", &Problem{Rule: "P2", File: annotationsFile, Message: "the annotations cannot be read as YAML", Remedy: "correct the file"}
	}
	declared, _ := content.Annotations[mediaType].(string)
	return declared, nil
}

// markers are the files that tell formats which are not supported.
var markers = []struct{ file, format string }{
	{"Chart.yaml", "a Helm chart"},
	{"kustomization.yaml", "a kustomization"},
	{"kustomization.yml", "a kustomization"},
	{"Kustomization", "a kustomization"},
}

// unsupported recognises trees of formats that are refused, so that the refusal can name them.
func unsupported(files fs.FS) *Problem {
	for _, marker := range markers {
		if exists(files, marker.file) {
			return &Problem{Rule: "format", File: marker.file, Message: "this is " + marker.format + "; the supported formats are registry+v1 and plain+v0",
				Remedy: "render it to manifests first, or point spec.path at a folder of manifests"}
		}
	}
	return nil
}

func exists(files fs.FS, name string) bool {
	_, err := fs.Stat(files, name)
	return err == nil
}

// hasCSV looks for the word in the files right in manifests/; a false friend only leads to a question, never to an apply.
func hasCSV(files fs.FS, limits Limits) bool {
	entries, err := fs.ReadDir(files, manifestsFolder)
	if err != nil {
		return false
	}
	for _, entry := range entries {
		if entry.Type().IsRegular() && manifest.Named(entry.Name()) && mentions(files, path.Join(manifestsFolder, entry.Name()), limits.FileBytes) {
			return true
		}
	}
	return false
}

func mentions(files fs.FS, name string, limit int64) bool {
	f, err := files.Open(name)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // opened for reading only: closing cannot lose anything
	data, err := io.ReadAll(io.LimitReader(f, limit))
	return err == nil && csvKind(data)
}

// csvKind finds a line (or JSON member) that gives the kind ClusterServiceVersion.
func csvKind(data []byte) bool {
	const word = "ClusterServiceVersion"
	for {
		at := bytes.Index(data, []byte(word))
		if at < 0 {
			return false
		}
		before := strings.TrimRight(string(data[max(0, at-16):at]), ` "'`)
		before, colon := strings.CutSuffix(before, ":")
		if colon && strings.HasSuffix(strings.TrimRight(before, ` "'`), "kind") {
			return true
		}
		data = data[at+len(word):]
	}
}

func holdsManifests(files fs.FS) bool {
	found := false
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() && manifest.Named(name) {
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return err == nil && found
}
