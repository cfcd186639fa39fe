package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/credence-id/credence/internal/endpoint"
)

const (
	// largestMessage is that of kubelets.
	largestMessage = 16 << 20
	// quietLimit is for calls in flight when the guard is to end, while which it serves on: a pull of an image takes a while, and the kubelet would
	// show it as failed. systemd kills after a minute and a half.
	quietLimit = time.Minute
	// stopLimit is for those that have come in since. A kubelet waits 5 s for an answer to a new connection, and then for the next guard.
	stopLimit = 3 * time.Second
)

// reconnecting is as soon as a kubelet does it.
var reconnecting = grpc.ConnectParams{MinConnectTimeout: 5 * time.Second, Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second}}

// Guard is the proxy.
type Guard struct {
	Config
	runtime    *grpc.ClientConn
	images     runtime.ImageServiceClient
	containers runtime.RuntimeServiceClient
	decisions  map[string]decision
	// answers are decisions about what the runtime answers.
	answers  map[string]decision
	verdicts *verdicts
	calls    calls
	// ending is closed once streams that never end are to.
	ending chan struct{}
}

// decision returns the message that goes on, or the status with which the call is refused.
type decision func(ctx context.Context, request frame) (frame, error)

// New returns a proxy of the runtime that listens at an endpoint, once it does.
func New(config Config, of endpoint.Endpoint) (*Guard, error) {
	// The name of the server is the one that gRPC gives a local one.
	connection, err := grpc.NewClient("passthrough:///runtime", grpc.WithAuthority("localhost"), grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return of.Dial(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(reconnecting), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largestMessage)))
	if err != nil {
		return nil, fmt.Errorf("connect to the container runtime: %w", err)
	}
	g := &Guard{
		Config: config, runtime: connection, images: runtime.NewImageServiceClient(connection), containers: runtime.NewRuntimeServiceClient(connection),
		calls: newCalls(), ending: make(chan struct{}),
	}
	if config.Reviews != nil {
		if g.verdicts, err = readVerdicts(config.Verdicts); err != nil {
			config.Log.Warn("the verdicts of the last guard can't be read: the API must give them again", "error", err)
		}
	}
	g.decisions = map[string]decision{
		runtime.RuntimeService_RunPodSandbox_FullMethodName:   decided(g.runPodSandbox),
		runtime.RuntimeService_CreateContainer_FullMethodName: decided(g.createContainer),
		runtime.RuntimeService_RestorePod_FullMethodName:      decided(g.restorePod),
		runtime.RuntimeService_StartContainer_FullMethodName:  decided(g.startContainer),
	}
	g.answers = map[string]decision{runtime.RuntimeService_Version_FullMethodName: decided(marked)}
	return g, nil
}

// decided is a decision about a message. One that it does not change stays as it is, byte for byte.
func decided[M any, P interface {
	*M
	proto.Message
}](decide func(context.Context, P) (changed bool, err error)) decision {
	return func(ctx context.Context, request frame) (frame, error) {
		message := P(new(M))
		if err := proto.Unmarshal(request, message); err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "credence-node guard can't read the message, and creates nothing: %s", err)
		}
		changed, err := decide(ctx, message)
		if err != nil || !changed {
			return request, err
		}
		made, err := proto.Marshal(message)
		if err != nil {
			return nil, status.Errorf(codes.Internal, "credence-node guard can't write the message, and creates nothing: %s", err)
		}
		return made, nil
	}
}

// Serve answers the kubelet until ctx is done, and then until no call is in flight, or for quietLimit. The listener is closed, and so is the
// connection to the runtime.
func (g *Guard) Serve(ctx context.Context, listener net.Listener) error {
	server := grpc.NewServer(grpc.ForceServerCodecV2(codec{}), grpc.UnknownServiceHandler(g.handle), grpc.MaxRecvMsgSize(largestMessage))
	held := &accepting{Listener: listener}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(held) }()
	defer func() { _ = g.runtime.Close() }()
	select {
	case err := <-stopped:
		return fmt.Errorf("serve the container runtime on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	g.calls.wait(time.After(quietLimit))
	closed := listener.Close()
	if err := <-stopped; closed != nil || !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("stop serving the container runtime on %s: %w", listener.Addr(), errors.Join(closed, err))
	}
	held.unread.Wait()
	close(g.ending)
	deadline := time.AfterFunc(stopLimit, server.Stop)
	defer deadline.Stop()
	server.GracefulStop()
	return nil
}

// handle has each call of the kubelet. Methods that the guard does not know have the answer of a runtime that is older, without which kubelets do.
func (g *Guard) handle(_ any, kubelet grpc.ServerStream) error {
	method, found := grpc.MethodFromServerStream(kubelet)
	if !found {
		return status.Error(codes.Internal, "the call has no method")
	}
	_, passes := passing[method]
	decide := g.decisions[method]
	if !passes && decide == nil {
		return status.Errorf(codes.Unimplemented, "credence-node guard does not know %s, and passes on what it knows alone: a later version may know it", method)
	}
	if !endless[method] {
		g.calls.begin()
		defer g.calls.end()
	}
	ctx := kubelet.Context()
	if received, found := metadata.FromIncomingContext(ctx); found {
		ctx = metadata.NewOutgoingContext(ctx, received)
	}
	if finish := g.answers[method]; decide != nil || finish != nil {
		return g.one(ctx, method, kubelet, decide, finish)
	}
	return g.pass(ctx, method, kubelet)
}

// one has a call of one request and one answer, either of which is decided on.
func (g *Guard) one(ctx context.Context, method string, kubelet grpc.ServerStream, decide, finish decision) error {
	var request, answer frame
	err := kubelet.RecvMsg(&request)
	if err == nil && decide != nil {
		request, err = decide(ctx, request)
	}
	if err != nil {
		return err
	}
	var header, trailer metadata.MD
	err = g.runtime.Invoke(ctx, method, &request, &answer, grpc.ForceCodecV2(codec{}), grpc.Header(&header), grpc.Trailer(&trailer))
	kubelet.SetTrailer(trailer)
	if err != nil {
		return err
	}
	if err := kubelet.SetHeader(header); err != nil {
		return err
	}
	if finish != nil {
		if answer, err = finish(ctx, answer); err != nil {
			return err
		}
	}
	return kubelet.SendMsg(&answer)
}

// pass has any other call: messages go in both directions as they come.
func (g *Guard) pass(ctx context.Context, method string, kubelet grpc.ServerStream) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if endless[method] {
		go func() {
			select {
			case <-g.ending:
				cancel(errEnding)
			case <-ctx.Done():
			}
		}()
	}
	answers, err := g.runtime.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method, grpc.ForceCodecV2(codec{}))
	if err != nil {
		return err
	}
	// It ends with the call: receiving fails then.
	go func() {
		for {
			var request frame
			err := kubelet.RecvMsg(&request)
			if errors.Is(err, io.EOF) {
				_ = answers.CloseSend() // always nil
				return
			}
			// Where sending fails, receiving has the cause.
			if err != nil || answers.SendMsg(&request) != nil {
				return
			}
		}
	}()
	if header, err := answers.Header(); err == nil && header != nil {
		if err := kubelet.SendHeader(header); err != nil {
			return err
		}
	}
	for {
		var answer frame
		if err := answers.RecvMsg(&answer); err != nil {
			kubelet.SetTrailer(answers.Trailer())
			if errors.Is(err, io.EOF) {
				return nil
			}
			if errors.Is(context.Cause(ctx), errEnding) {
				return errEnding
			}
			return err
		}
		if err := kubelet.SendMsg(&answer); err != nil {
			return err
		}
	}
}

// frame is a message that is not decoded.
type frame []byte

// codec moves frames as they are.
type codec struct{}

// Name implements encoding.CodecV2. Both sides have messages of protobuf.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("%T is not a frame", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*f)}, nil
}

// Unmarshal implements encoding.CodecV2.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("%T is not a frame", v)
	}
	*f = data.Materialize()
	return nil
}
