// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/satchel-dev/satchel/charts"
)

// releaseNamespace is that in which the chart is rendered. The chart creates any other namespace that its values name.
const releaseNamespace = "default"

// Manifests returns the objects of an installation, in the order in which they are applied, which is Helm's: Namespaces come
// first. An error lists all problems of the options.
func Manifests(o Options) ([]*unstructured.Unstructured, error) {
	loaded, err := load(o.version())
	if err != nil {
		return nil, fmt.Errorf("reading the embedded chart: %w", err)
	}
	values, err := chartutil.CoalesceValues(loaded, o.Values)
	if err != nil {
		return nil, fmt.Errorf("merging the values: %w", err)
	}
	if err := validate(o.namespace(), values); err != nil {
		return nil, err
	}
	release := common.ReleaseOptions{Name: charts.Name, Namespace: releaseNamespace, IsInstall: true}
	inputs, err := chartutil.ToRenderValues(loaded, o.withNamespace(), release, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(loaded, inputs)
	if err != nil {
		return nil, fmt.Errorf("rendering the embedded chart: %w", err)
	}
	var objects []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(name) != ".yaml" { // NOTES.txt
			continue
		}
		parsed, err := parse([]byte(files[name]))
		if err != nil {
			return nil, fmt.Errorf("reading what the template %s rendered: %w", name, err)
		}
		objects = append(objects, parsed...)
	}
	slices.SortStableFunc(objects, byInstallOrder)
	return objects, validateImages(objects)
}

// load reads the embedded chart.
func load(version string) (*chart.Chart, error) {
	files, err := charts.Files(version)
	if err != nil {
		return nil, err
	}
	buffered := make([]*archive.BufferedFile, 0, len(files))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		buffered = append(buffered, &archive.BufferedFile{Name: name, Data: files[name]})
	}
	return loader.LoadFiles(buffered)
}

// byInstallOrder orders objects by their kinds as Helm does, and kinds that Helm does not know last.
func byInstallOrder(a, b *unstructured.Unstructured) int {
	rank := func(o *unstructured.Unstructured) int {
		if at := slices.Index(releaseutil.InstallOrder, o.GetKind()); at >= 0 {
			return at
		}
		return len(releaseutil.InstallOrder)
	}
	return rank(a) - rank(b)
}

// parse reads a stream of YAML documents.
func parse(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var document json.RawMessage
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(document) == 0 || strings.TrimSpace(string(document)) == "null" {
			continue
		}
		o := new(unstructured.Unstructured)
		if err := o.UnmarshalJSON(document); err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
}
