// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/tagversion"
	"github.com/satchel-dev/satchel/internal/view"
)

// HelmRelease is what a Secret of Helm says about one revision of a release.
type HelmRelease struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Version   int    `json:"version"` // the number of the revision
	Info      struct {
		Status string `json:"status"`
	} `json:"info"`
	Config json.RawMessage `json:"config"` // the values that the user gave
	Chart  struct {
		Metadata struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"metadata"`
	} `json:"chart"`
}

const (
	// releaseType is the type of the Secrets of releases.
	releaseType = "helm.sh/release.v1"
	// maxRelease bounds a release, unpacked. A Secret holds at most 1 MiB of it, packed.
	maxRelease = 64 << 20
)

// DecodeRelease reads a release as Helm stores it: JSON, packed with gzip or, by Helm 2.7 and before, not, in base64.
func DecodeRelease(data []byte) (HelmRelease, error) {
	var r HelmRelease
	packed, err := base64.StdEncoding.DecodeString(string(data))
	if err != nil {
		return r, errors.New("it is not in base64")
	}
	text := io.Reader(bytes.NewReader(packed))
	if bytes.HasPrefix(packed, []byte("\x1f\x8b\x08")) {
		if text, err = gzip.NewReader(text); err != nil {
			return r, errors.New("it is damaged")
		}
	}
	whole, err := io.ReadAll(io.LimitReader(text, maxRelease+1))
	switch {
	case err != nil:
		return r, errors.New("it is damaged")
	case len(whole) > maxRelease:
		return r, fmt.Errorf("it has more than %d bytes", maxRelease)
	}
	if err := json.Unmarshal(whole, &r); err != nil {
		return r, errors.New("it is not the JSON of a release")
	}
	if r.Chart.Metadata.Name == "" || r.Chart.Metadata.Version == "" {
		return r, errors.New("it names no chart")
	}
	return r, nil
}

// deployedRelease reads the deployed revision of a release.
func deployedRelease(ctx context.Context, c client.Client, namespace, name string) (HelmRelease, error) {
	var list corev1.SecretList
	if err := c.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"owner": "helm", "name": name}); err != nil {
		return HelmRelease{}, fmt.Errorf("reading the Secrets of the Helm release %s/%s: %w", namespace, name, err)
	}
	releases := slices.DeleteFunc(list.Items, func(s corev1.Secret) bool { return s.Type != releaseType })
	if len(releases) == 0 {
		return HelmRelease{}, fmt.Errorf("there is no Helm release %q in the namespace %q: choose another with --former helm/NAME, or its namespace with -n "+
			"(releases that Helm stores elsewhere than in Secrets are not found)", name, namespace)
	}
	newest := slices.MaxFunc(releases, func(a, b corev1.Secret) int { return cmp.Compare(revisionOf(a), revisionOf(b)) })
	if status := newest.Labels["status"]; status != "deployed" {
		return HelmRelease{}, fmt.Errorf("the last revision %d of the Helm release %s/%s is %s, not deployed: finish it with helm upgrade or helm rollback first",
			revisionOf(newest), namespace, name, view.Printable(status))
	}
	release, err := DecodeRelease(newest.Data["release"])
	if err != nil {
		return HelmRelease{}, fmt.Errorf("reading the Helm release in the Secret %s/%s: %w", namespace, newest.Name, err)
	}
	return release, nil
}

func revisionOf(s corev1.Secret) int {
	number, _ := strconv.Atoi(s.Labels["version"]) // of another client: 0
	return number
}

// values are those that the user gave; nil for none.
func (r HelmRelease) values() (map[string]any, error) {
	if len(r.Config) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(r.Config))
	decoder.UseNumber()
	var values map[string]any
	if err := decoder.Decode(&values); err != nil {
		return nil, errors.New("the values of the release are not a mapping")
	}
	return values, nil
}

// imageOf is the chart in a registry, where "helm push" has stored it.
func (r HelmRelease) imageOf(repository string) string {
	if strings.Contains(repository, "@") || strings.LastIndexByte(repository, ':') > strings.LastIndexByte(repository, '/') {
		return repository
	}
	return repository + ":" + tagversion.Tag(r.Chart.Metadata.Version)
}
