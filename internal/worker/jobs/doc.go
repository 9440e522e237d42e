// SPDX-License-Identifier: Apache-2.0

// Package jobs has the jobs of worker processes: they convert bundles, find the format of one, describe charts,
// judge the upgrades of CRDs and parse packages of catalogs. The files of a bundle are passed by descriptor, options and results as CBOR, which
// distinguishes integers from floating-point numbers. Options can contain values of Secrets: they stay in memory.
package jobs

import (
	"context"
	"fmt"
	"os"
	"reflect"

	"github.com/fxamacker/cbor/v2"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/fetch/packed"
	"github.com/satchel-dev/satchel/internal/worker"
	"github.com/satchel-dev/satchel/internal/worker/child"
)

// Kinds of jobs.
const (
	convertKind  = "convert"
	describeKind = "describe"
	judgeKind    = "judge"
	parseKind    = "parse-package"
)

// Handlers are the jobs, for child.Main.
func Handlers() map[string]child.Handler {
	return map[string]child.Handler{convertKind: convertBundle, describeKind: describeChart, judgeKind: judgeUpgrade, parseKind: parsePackage}
}

// Runner runs jobs in worker processes: a worker.Pool.
type Runner interface {
	Run(ctx context.Context, request worker.Request) ([]byte, error)
}

// Files are those of a bundle: see package packed. The file is open for reading only.
type Files struct {
	File  *os.File
	Index []packed.Entry
}

// deepest is the nesting limit of the encoding: that of manifests is lower.
const deepest = 1000

// encoding and decoding keep Go values as they are: nil and empty containers, integers and floating-point numbers.
var (
	encoding = must(cbor.EncOptions{
		OmitEmpty: cbor.OmitEmptyGoValue, ByteArray: cbor.ByteArrayToArray, BinaryMarshaler: cbor.BinaryMarshalerNone,
	}.EncMode())
	decoding = must(cbor.DecOptions{
		IntDec: cbor.IntDecConvertSignedOrFail, DefaultMapType: reflect.TypeFor[map[string]any](), DefaultByteStringType: reflect.TypeFor[string](),
		ByteStringToString: cbor.ByteStringToStringAllowed, FieldNameByteString: cbor.FieldNameByteStringAllowed,
		UTF8: cbor.UTF8DecodeInvalid, MaxNestedLevels: deepest, MaxArrayElements: 16 << 20, MaxMapPairs: 16 << 20,
		TagsMd: cbor.TagsAllowed, BinaryUnmarshaler: cbor.BinaryUnmarshalerNone,
	}.DecMode())
)

func must[T any](mode T, err error) T {
	if err != nil {
		panic(err) //nolint:forbidigo // the options above contradict each other
	}
	return mode
}

// refusal is an encoded *convert.Error; nil for none.
type refusal []convert.Problem

// refused returns the problems in an error of package convert.
func refused(err error) (refusal, error) {
	if err == nil {
		return nil, nil
	}
	if problems, ok := err.(*convert.Error); ok { //nolint:errorlint // it is the type of every error of that package, never wrapped
		return problems.Problems, nil
	}
	return nil, err
}

func (r refusal) err() error {
	if len(r) == 0 {
		return nil
	}
	return &convert.Error{Problems: r}
}

// Run sends a request and reads the answer.
func Run(ctx context.Context, runner Runner, namespace, kind string, files *os.File, request, answer any) error {
	data, err := encoding.Marshal(request)
	if err != nil {
		return fmt.Errorf("encoding a job for a worker process: %w", err)
	}
	result, err := runner.Run(ctx, worker.Request{Namespace: namespace, Kind: kind, Data: data, File: files})
	if err != nil {
		return err
	}
	return decode(result, answer)
}

func decode(data []byte, into any) error {
	if err := decoding.Unmarshal(data, into); err != nil {
		return fmt.Errorf("decoding the answer of a worker process: %w", err)
	}
	return nil
}

// Handle reads a request and encodes the answer to it.
func Handle[Request, Answer any](in child.Input, do func(Request) (Answer, error)) ([]byte, error) {
	var request Request
	if err := decoding.Unmarshal(in.Data, &request); err != nil {
		return nil, fmt.Errorf("decoding a job: %w", err)
	}
	answer, err := do(request)
	if err != nil {
		return nil, err
	}
	return encoding.Marshal(answer)
}
