@file:JvmName("Toolspan")

package dev.toolspan

import java.util.concurrent.CompletableFuture

// The functions of the package: those of one engine, which is made when the first of them is called.

private val shared: Engine by lazy { Engine() }

/** Connects the servers and collects the tools. A server that fails is left out, see [Toolkit.status]. */
@JvmSynthetic
public suspend fun createToolkit(block: ToolkitOptions.() -> Unit = {}): Toolkit = shared.createToolkit(block)

/** The same. */
@JvmSynthetic
public suspend fun createToolkit(options: ToolkitOptions): Toolkit = shared.createToolkit(options)

/** Connects the servers and collects the tools. A server that fails is left out, see [Toolkit.status]. */
@JvmName("createToolkit")
@JvmOverloads
@Throws(InterruptedException::class)
public fun createToolkitBlocking(options: ToolkitOptions = ToolkitOptions()): Toolkit = shared.createToolkitBlocking(options)

/** The same, as a future. */
@JvmOverloads
public fun createToolkitAsync(options: ToolkitOptions = ToolkitOptions()): CompletableFuture<Toolkit> = shared.createToolkitAsync(options)

/** A client of an endpoint. Nothing is sent before the first run. */
@JvmSynthetic
public fun createClient(block: ClientOptions.() -> Unit): Client = shared.createClient(block)

/** A client of an endpoint. Nothing is sent before the first run. */
public fun createClient(options: ClientOptions): Client = shared.createClient(options)

/** Connects, lists and disconnects (SPEC 3.6). */
@JvmSynthetic
public suspend fun listMcpTools(block: McpToolsOptions.() -> Unit): McpTools = shared.listMcpTools(block)

/** Connects, lists and disconnects (SPEC 3.6). */
@JvmName("listMcpTools")
@Throws(InterruptedException::class)
public fun listMcpToolsBlocking(options: McpToolsOptions): McpTools = shared.listMcpToolsBlocking(options)

/** The same, as a future. */
public fun listMcpToolsAsync(options: McpToolsOptions): CompletableFuture<McpTools> = shared.listMcpToolsAsync(options)

/** Version of the library. */
public fun version(): String = shared.version()
