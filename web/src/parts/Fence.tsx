import { Component, type ReactNode } from "react";

interface Props {
  /** of is the URL of the view: another view begins anew. */
  of: string;
  children: ReactNode;
}

/** Fence keeps a view that fails from taking the page with it, and says so: a file of an older version is gone, or an answer has a form that the page does not know. */
export class Fence extends Component<Props, { failure?: unknown }> {
  override state: { failure?: unknown } = {};

  static getDerivedStateFromError(failure: unknown): { failure: unknown } {
    return { failure };
  }

  override componentDidUpdate(before: Props): void {
    if (this.state.failure !== undefined && before.of !== this.props.of) this.setState({ failure: undefined });
  }

  override render(): ReactNode {
    const { failure } = this.state;
    if (failure === undefined) return this.props.children;
    return (
      <section>
        <h1>This view failed</h1>
        <div role="alert" className="failure">
          <p>{failure instanceof Error ? failure.message : String(failure)}</p>
          <p>Reload the page: the server may have another version since you opened it.</p>
        </div>
      </section>
    );
  }
}
