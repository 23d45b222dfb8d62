// Begins: theme, address, polling, and the page itself.
import { render } from 'preact';
import 'uplot/dist/uPlot.min.css';
import './styles/base.css';
import './styles/parts.css';
import './styles/views.css';
import { App } from './app';
import { listen } from './route';
import { poll } from './data/state';
import { startTheme } from './theme';

startTheme();
listen();
render(<App />, document.getElementById('page')!);
void poll();
