/**
 * toolspan: an agent that uses tools. The words are those of SPEC.md; keys and defaults are the same in every language.
 */
import type { ErrorCode } from "./errors.js";
import type {
  Adaptation,
  AfterLLM,
  AfterTool,
  BeforeLLM,
  BeforeTool,
  ContentPart,
  Counters,
  ErrorRecord,
  EventRecord,
  ExecutedCall,
  Inventory,
  LogLevel,
  LogRecord,
  MetricEvent,
  Provider,
  RequestFailure,
  RunResultRecord,
  ServerStatus,
  Style,
  ToolInfo,
  ToolResultRecord,
} from "./models.js";

export * from "./errors.js";
export type {
  Adaptation,
  ContentPart,
  Counters,
  ErrorCause,
  ErrorRecord,
  Inventory,
  ListedTool,
  LogLevel,
  LogRecord,
  Loss,
  MetricEvent,
  Provider,
  ServerStatus,
  Style,
  ToolInfo,
  Usage,
} from "./models.js";

/** A value as JSON has it. */
export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };
/** A JSON object. */
export type JsonObject = { [key: string]: JsonValue };
/** A JSON Schema. */
export type JsonSchema = { readonly [keyword: string]: unknown };
/** A message of a transcript, in the dialect of the client. */
export type Message = JsonObject;

// Errors

/**
 * What every failure is; there is a subclass for each code. `message` reads `code: path: text`. `cause` is what a
 * function of the program threw, or the reason of its AbortSignal, or else the library's own chain.
 */
export class ToolspanError extends Error {
  constructor(record: ErrorRecord, cause?: unknown);
  readonly code: ErrorCode;
  readonly retryable: boolean;
  readonly retryAfterMs?: number;
  readonly httpStatus?: number;
  readonly provider?: string;
  readonly server?: string;
  readonly tool?: string;
  readonly path?: string;
  readonly details?: JsonValue;
  /** The record as it came. */
  toJSON(): ErrorRecord;
}

// Tools

/** Advisory; taken from MCP annotations. */
export interface ToolHints {
  readOnly?: boolean;
  destructive?: boolean;
  openWorld?: boolean;
}

/** Result of one call. An expected failure is `isError`, for the model to act on. */
export interface ToolResult extends ToolResultRecord {
  /** What the program's own function threw. Not enumerable. */
  readonly cause?: unknown;
}

/** What a tool may know about the call it serves. */
export interface ToolCallContext {
  name: string;
  /** Aborted when nobody waits for the result any more. */
  signal: AbortSignal;
  /** The id the model gave the call; absent outside a run. */
  callId?: string;
  /** The budget of the call, where it has one. */
  timeoutMs?: number;
}

/**
 * A tool of the program (SPEC 6). The handler returns text, a {@link ToolResult}, any other JSON value (its compact JSON
 * is the output), or nothing (an empty output), or a promise of these. What it throws becomes an error result.
 */
export interface Tool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema?: JsonSchema;
  readonly hints?: ToolHints;
  readonly handler: (args: JsonObject, context: ToolCallContext) => unknown;
}

/** A validator of the Standard Schema family, such as zod, Valibot or ArkType. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** What a validator says. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: ReadonlyArray<{ readonly message: string; readonly path?: ReadonlyArray<unknown> | undefined }> };

/** What a validator gives on. */
export type OutputOf<S extends StandardSchema> = NonNullable<S["~standard"]["types"]>["output"];

interface DefinitionOf<Input, Args> {
  /** `[A-Za-z0-9_-]{1,64}`. */
  name: string;
  /** For the model. */
  description?: string;
  /** The arguments: a JSON Schema, or a validator, whose output `run` gets. */
  input?: Input;
  /** The JSON Schema, for validators that do not describe themselves. */
  inputSchema?: JsonSchema;
  hints?: ToolHints;
  run: (args: Args, context: ToolCallContext) => unknown;
}

/** Makes a tool of a function whose arguments a validator checks. `TypeError` when the validator gives no JSON Schema. */
export function defineTool<S extends StandardSchema>(
  definition: DefinitionOf<S, OutputOf<S>> & { input: S },
): Tool;
/** Makes a tool of a function whose arguments a JSON Schema describes. They are not checked against it. */
export function defineTool<Args = JsonObject>(definition: DefinitionOf<JsonSchema, Args>): Tool;

// Servers and toolkits

/** One entry of the MCP configuration (SPEC 3.1). */
export interface McpServerConfig {
  type?: "local" | "stdio" | "remote" | "http" | "streamable-http" | "streamableHttp" | "sse";
  command?: string | string[];
  args?: string[];
  environment?: Record<string, string>;
  env?: Record<string, string>;
  inheritEnv?: "all" | "none" | string[];
  cwd?: string;
  url?: string;
  headers?: Record<string, string>;
  enabled?: boolean;
  disabled?: boolean;
  timeout?: number;
  tools?: Record<string, boolean> | null;
  expose?: "prefixed" | "original";
  dedupKey?: string;
  dedupPreferred?: boolean;
  required?: boolean;
}

/** A configuration as an object: a document, or the map of servers itself. */
export type McpConfigObject =
  | { mcpServers: Record<string, McpServerConfig> }
  | { servers: Record<string, McpServerConfig> }
  | { mcp: Record<string, McpServerConfig> }
  | Record<string, McpServerConfig>;

/** A path, an object, or the bytes of a JSON document. */
export type McpConfig = string | McpConfigObject | Uint8Array;

/** Cancels, in the way of `fetch`. The operation then fails with `cancelled`, whose cause is the signal's reason. */
export interface Cancellable {
  signal?: AbortSignal | null;
}

/** SPEC 4.1. */
export interface ToolkitOptions extends Cancellable {
  mcpConfig?: McpConfig;
  /** The text of the configuration document. */
  mcpConfigText?: string;
  /** The program's own tools, after those of the servers. */
  tools?: readonly Tool[];
  /** Final names of tools to leave out. */
  disableTools?: readonly string[];
  /** Whether arguments are checked against the tool's schema before it runs (SPEC 4.4). Default: true. */
  validateArguments?: boolean;
  /** Deadline of the whole build. */
  timeoutMs?: number;
}

/** An ordered set of tools and the connections behind them. Close it, or hold it with `await using`. */
export class Toolkit implements AsyncDisposable {
  private constructor();
  tools(): ToolInfo[];
  /** The tool of that name, or null. */
  get(name: string): ToolInfo | null;
  /** Every server of the configuration by id. */
  status(): Record<string, ServerStatus>;
  adapt(provider: Provider): Adaptation;
  /** Adds a tool of the program; false when the name was taken. */
  register(tool: Tool): boolean;
  /** Executes one call outside a run. `args` may have any shape of SPEC 4.4. */
  execute(name: string, args?: JsonValue, options?: Cancellable & { timeoutMs?: number }): Promise<ToolResult>;
  /** Ends sessions, sockets and processes; again and again if you like. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface ListOptions extends Cancellable {
  timeoutMs?: number;
}

// Clients

/** Whether a hook may wait: all may. Each also gets the signal that tells when nobody waits for it any more. */
type Hook<In, Out> = (payload: In, context: { signal: AbortSignal }) => Out | void | Promise<Out | void>;

/** SPEC 7.4. What a hook throws ends the run, and is the cause of its error. */
export interface Hooks {
  beforeLLM?: Hook<BeforeLLM, { messages?: Message[]; tools?: JsonValue[]; model?: string } | null>;
  afterLLM?: Hook<AfterLLM, void>;
  beforeTool?: Hook<BeforeTool, { result: ToolResult } | { args: JsonObject } | null>;
  afterTool?: Hook<AfterTool, { result: ToolResult } | null>;
}

/** A stored conversation. */
export interface Transcript {
  version: 1;
  style: Style;
  messages: Message[];
}

/** A conversation store of the program (SPEC 7.7). */
export interface ConversationStore {
  get(id: string): Transcript | Message[] | null | undefined | Promise<Transcript | Message[] | null | undefined>;
  save(id: string, transcript: Transcript): unknown;
}

/** What `httpClient` is called with, the second argument of `fetch`. */
export interface HttpRequestInit {
  method: string;
  headers: [string, string][];
  body: string;
  signal: AbortSignal;
  redirect: "manual";
}

/** What `httpClient` answers, the part of a `Response` that is used. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: Iterable<[string, string]>;
  readonly body: { getReader(): { read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>; cancel(): Promise<void> } } | null;
  text(): Promise<string>;
}

/** SPEC 7.1; what is absent has the default of the table there. */
export interface ClientOptions {
  baseUrl: string;
  style: Style;
  model: string;
  apiKey?: string;
  apiKeyEnv?: string;
  headers?: Record<string, string>;
  systemPrompt?: string;
  maxTurns?: number;
  maxToolConcurrency?: number;
  maxToolOutputBytes?: number;
  retries?: number;
  retryBaseMs?: number;
  maxRetryDelayMs?: number;
  retryableStatuses?: readonly number[];
  timeoutMs?: number;
  firstByteTimeoutMs?: number;
  idleTimeoutMs?: number;
  requestParams?: JsonObject;
  /** Sees the whole body, last, and returns the one to send; nothing means that the body stays. */
  bodyTransform?: Hook<JsonObject, JsonObject | null>;
  hooks?: Hooks;
  /** May turn a failure into a retry or an end. */
  onError?: Hook<Omit<RequestFailure, "error"> & { error: ToolspanError }, "retry" | "fail" | null>;
  /** Sends the requests to the model: `fetch`, or a function like it. */
  httpClient?: (url: string, init: HttpRequestInit) => Promise<HttpResponse>;
  store?: string | ConversationStore;
  onMetric?: (event: MetricEvent) => unknown;
}

/** What the user says: text, or content parts. May be empty when there is a history. */
export type Prompt = string | readonly ContentPart[];

/** What a single call may set. */
export interface RunOptions extends Cancellable {
  toolkit?: Toolkit | null;
  /** Messages before the prompt, in the client's dialect. */
  history?: readonly Message[];
  systemPrompt?: string;
  model?: string;
  maxTurns?: number;
  timeoutMs?: number;
}

/** One executed call of a run. */
export interface ToolCallRecord extends ExecutedCall {
  /** What the program's own function threw. Not enumerable. */
  readonly cause?: unknown;
}

type RunResultBase = Omit<RunResultRecord, "toolCalls" | "status" | "limit"> & { toolCalls: ToolCallRecord[] };

/** What a run gives back; a limit that ended it stands in `limit`. */
export type RunResult = RunResultBase &
  ({ status: "done" } | { status: "incomplete"; limit: "maxTurns" | "maxTokens" | "timeout" });

/** What a stream tells (SPEC 7.5); `done` is the last. */
export type Event = Exclude<EventRecord, { type: "done" }> | { type: "done"; result: RunResult };

/** Events of one run. It starts when the first is asked for; leaving the loop ends the run and closes its connection. */
export interface EventStream extends AsyncIterableIterator<Event>, AsyncDisposable {
  return(): Promise<IteratorResult<Event, undefined>>;
}

/** One endpoint and one model. */
export class Client implements AsyncDisposable {
  private constructor();
  /** Sends the prompt, executes the calls the model asks for, and repeats until it answers or a limit is reached. */
  run(prompt: Prompt, options?: RunOptions): Promise<RunResult>;
  /** The same run, event by event. */
  stream(prompt: Prompt, options?: RunOptions): EventStream;
  /** The same run with a memory: loads the conversation, runs, saves it. */
  ask(prompt: Prompt, options: RunOptions & { id: string }): Promise<RunResult>;
  /** A conversation, of that id where one is given. */
  conversation(options?: { id?: string; toolkit?: Toolkit | null }): Conversation;
  /** The store that `ask` uses. */
  conversationStore(): {
    get(id: string): Promise<Transcript | null>;
    save(id: string, messages: Transcript | readonly Message[]): Promise<void>;
  };
  /** Metrics in the text format of Prometheus. */
  metrics(): string;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Prompts that follow each other. */
export class Conversation {
  private constructor();
  send(prompt: Prompt, options?: Cancellable): Promise<RunResult>;
  messages(): Promise<Message[]>;
  reset(): Promise<void>;
}

// Engines

export interface EngineOptions {
  /** Receives log records; the library prints nothing. */
  log?: (record: LogRecord) => unknown;
  /** Least level wanted; every record when absent. */
  logLevel?: LogLevel;
  /** Worker threads. Default: 1; more pay off where the runs at a time compute more than one core does. */
  workers?: number;
}

/** Threads, toolkits, clients and logs of its own. Most programs use the functions below and never make one. */
export class Engine implements AsyncDisposable {
  constructor(options?: EngineOptions);
  createToolkit(options?: ToolkitOptions): Promise<Toolkit>;
  createClient(options: ClientOptions): Client;
  listMcpTools(mcpConfig: McpConfig, options?: ListOptions): Promise<Inventory>;
  counters(): Counters;
  version(): string;
  /** Ends everything that is open, also what runs. False when `timeoutMs` was not enough and it goes on behind. */
  close(options?: { timeoutMs?: number }): Promise<boolean>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Connects the servers and collects the tools. A server that fails is left out, see {@link Toolkit.status}. */
export function createToolkit(options?: ToolkitOptions): Promise<Toolkit>;
/** A client of an endpoint. Nothing is sent before the first run. */
export function createClient(options: ClientOptions): Client;
/** Connects, lists and disconnects. */
export function listMcpTools(mcpConfig: McpConfig, options?: ListOptions): Promise<Inventory>;
/** Version of the library. */
export function version(): string;
