// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/configmap"
	"github.com/satchel-dev/satchel/internal/fetch/git"
	"github.com/satchel-dev/satchel/internal/fetch/http"
	"github.com/satchel-dev/satchel/internal/fetch/image"
)

// fetcher builds the adapter of one source of the spec. What addresses it may
// reach, and whether over plain HTTP, the policy of the HTTP client decides.
func (r *Reconciler) fetcher(ctx context.Context, namespace string, source v1alpha1.Source) (fetch.Fetcher, error) {
	switch {
	case source.Image != nil:
		spec := source.Image
		return image.New(image.Options{
			Ref: spec.Ref, Platform: spec.Platform, Insecure: spec.Insecure, Client: r.http, Limits: r.Limits,
		})
	case source.Git != nil:
		return r.gitFetcher(source.Git)
	case source.HTTP != nil:
		return http.New(http.Options{URL: source.HTTP.URL, Digest: source.HTTP.Digest, Client: r.http, Limits: r.Limits})
	case source.ConfigMap != nil:
		return r.configMapFetcher(ctx, namespace, source.ConfigMap.Name)
	}
	return nil, fetch.Errorf(fetch.Refused, "the source at destination %q names none of image, git, http and configMap: add exactly one", source.Destination)
}

func (r *Reconciler) gitFetcher(spec *v1alpha1.GitSource) (fetch.Fetcher, error) {
	ref := spec.Ref
	if ref == nil {
		ref = &v1alpha1.GitRef{}
	}
	return git.New(git.Options{
		URL: spec.Repository, Branch: ref.Branch, Tag: ref.Tag, SemVer: ref.SemVer, Commit: ref.Commit,
		Directory: spec.Directory, Client: r.http, Limits: r.Limits,
	})
}

func (r *Reconciler) configMapFetcher(ctx context.Context, namespace, name string) (fetch.Fetcher, error) {
	var found corev1.ConfigMap
	err := r.APIReader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &found)
	if apierrors.IsNotFound(err) {
		return nil, fetch.Errorf(fetch.NotFound, "configmap %s/%s does not exist: create it, or correct the name", namespace, name)
	}
	if err != nil {
		return nil, fetch.Errorf(fetch.Unreachable, "reading configmap %s/%s: %w", namespace, name, err)
	}
	return configmap.New(configmap.Options{Name: namespace + "/" + name, Data: found.Data, BinaryData: found.BinaryData})
}
