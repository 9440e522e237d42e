// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"net/url"

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

// fetcher builds the adapter of one source of the spec.
func (r *Reconciler) fetcher(ctx context.Context, namespace string, source v1alpha1.Source) (fetch.Fetcher, error) {
	switch {
	case source.Image != nil:
		return r.imageFetcher(source.Image)
	case source.Git != nil:
		return r.gitFetcher(source.Git)
	case source.HTTP != nil:
		return r.httpFetcher(source.HTTP)
	case source.ConfigMap != nil:
		return r.configMapFetcher(ctx, namespace, source.ConfigMap.Name)
	}
	return nil, fetch.Errorf(fetch.Refused, "the source at destination %q names none of image, git, http and configMap: add exactly one", source.Destination)
}

func (r *Reconciler) imageFetcher(spec *v1alpha1.ImageSource) (fetch.Fetcher, error) {
	if spec.Insecure {
		host, err := image.Host(spec.Ref)
		if err != nil {
			return nil, err
		}
		if !r.Policy.Insecure(host) {
			return nil, insecureRefused("image "+spec.Ref, host)
		}
	}
	return image.New(image.Options{
		Ref: spec.Ref, Platform: spec.Platform, Insecure: spec.Insecure, Client: r.http, Limits: r.Limits,
	})
}

func (r *Reconciler) gitFetcher(spec *v1alpha1.GitSource) (fetch.Fetcher, error) {
	if err := r.checkScheme("repository", spec.Repository); err != nil {
		return nil, err
	}
	ref := spec.Ref
	if ref == nil {
		ref = &v1alpha1.GitRef{}
	}
	return git.New(git.Options{
		URL: spec.Repository, Branch: ref.Branch, Tag: ref.Tag, SemVer: ref.SemVer, Commit: ref.Commit,
		Directory: spec.Directory, Client: r.http, Limits: r.Limits,
	})
}

func (r *Reconciler) httpFetcher(spec *v1alpha1.HTTPSource) (fetch.Fetcher, error) {
	if err := r.checkScheme("archive", spec.URL); err != nil {
		return nil, err
	}
	return http.New(http.Options{URL: spec.URL, Digest: spec.Digest, Client: r.http, Limits: r.Limits})
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

// checkScheme refuses plain http but for the hosts that the flags list.
func (r *Reconciler) checkScheme(what, raw string) error {
	parsed, err := url.Parse(raw)
	if err != nil {
		return fetch.Errorf(fetch.Refused, "the URL of the %s is malformed: %w", what, errors.Unwrap(err))
	}
	if parsed.Scheme == "http" && !r.Policy.Insecure(parsed.Host) {
		return insecureRefused(what+" "+parsed.Redacted(), parsed.Host)
	}
	return nil
}

func insecureRefused(what, host string) error {
	return fetch.Errorf(fetch.Refused, "%s: plain HTTP to %s is not allowed: use https, or have an administrator add the host to --insecure-hosts of the source controller", what, host)
}
